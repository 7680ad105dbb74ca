//! Which of the devices that are there have been met.

/// Devices that need no more looking at, by [`Context::device`](crate::object::Context::device).
#[derive(Debug, Default)]
pub(crate) struct Met(Vec<usize>);

impl Met {
    /// Whether any of those that are there has not been met.
    pub(crate) fn has_strangers(&self, there: &[usize]) -> bool {
        there.iter().any(|device| !self.0.contains(device))
    }

    /// Of those that are there, these have been met. What is not there is forgotten: one of the
    /// same name may come.
    pub(crate) fn note(&mut self, there: &[usize], met: &[usize]) {
        let both = there.iter().filter(|device| met.contains(device));
        self.0 = both.copied().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_is_one_until_it_is_met() {
        let mut met = Met::default();
        assert!(!met.has_strangers(&[]));
        met.note(&[1, 2], &[1]);
        assert!(!met.has_strangers(&[1]));
        assert!(met.has_strangers(&[1, 2]), "welcoming it failed");
        met.note(&[1, 2], &[2, 1]);
        assert!(!met.has_strangers(&[1, 2]));
        met.note(&[2], &[1, 2]);
        assert!(met.has_strangers(&[1, 2]), "it went and came back");
    }
}
