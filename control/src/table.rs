//! Tables for people: one look for all of them.

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};

/// An empty table. Headings that begin with `>` stand over numbers, which are set to the right.
pub(crate) fn table(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_header(
        headings
            .iter()
            .map(|heading| heading.trim_start_matches('>')),
    );
    for (index, heading) in headings.iter().enumerate() {
        if let Some(column) = table.column_mut(index).filter(|_| heading.starts_with('>')) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_are_set_to_the_right() {
        let mut table = super::table(&["name", ">count"]);
        table.add_row(["a", "7"]);
        let text = table.to_string();
        assert!(text.contains("│ a          7 │"), "{text}");
    }
}
