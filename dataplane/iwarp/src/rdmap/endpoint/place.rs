//! Placement: what is done with a segment when it comes.

use super::Endpoint;
use crate::ddp::order::Mark;
use crate::ddp::{self, Tagged, Untagged};
use crate::local::{Local, Memory};
use crate::rdmap::control::{Arrival, sort};
use crate::rdmap::request::READ_REQUEST_LEN;
use crate::rdmap::terminate::TERMINATE_LEN;
use crate::reject::Reject;
use crate::stag::Violation;
use rpcrdma_fabric::{Access, Span};

impl Endpoint {
    /// Places a segment's payload, after every check of RFC 5041 section 7.1 and RFC 5040 section
    /// 7.2 that does not have to wait for the segment's turn. Says what is to be done then.
    #[inline]
    pub(crate) fn place<M: Memory>(
        &mut self,
        segment: &[u8],
        local: &mut Local<'_, M>,
    ) -> Result<Mark, Reject> {
        let (header, payload) = ddp::parse(segment)?;
        match sort(header)? {
            Arrival::Send(header) => self.place_send(&header, segment, payload, local.memory),
            Arrival::Write(header) => self.place_write(&header, payload, local),
            Arrival::ReadResponse(header) => self.place_response(&header, payload, local.memory),
            Arrival::ReadRequest(header) => self.place_request(&header, segment, payload),
            Arrival::Terminate(header) => self.place_terminate(&header, segment, payload),
        }
    }

    #[inline]
    fn place_send<M: Memory>(
        &mut self,
        header: &Untagged,
        segment: &[u8],
        payload: &[u8],
        memory: &mut M,
    ) -> Result<Mark, Reject> {
        let room = |receive: &super::Receive| receive.memory.len;
        let receive = self
            .receives
            .place(header, segment, payload.len(), self.tiling, room)?;
        if !payload.is_empty() {
            // No longer than the receive, which the queue has checked.
            let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
            memory.place(receive.memory.skip(header.mo).first(len), payload);
        }
        Ok(mark(header.last, Mark::Send))
    }

    #[inline]
    fn place_write<M: Memory>(
        &mut self,
        header: &Tagged,
        payload: &[u8],
        local: &mut Local<'_, M>,
    ) -> Result<Mark, Reject> {
        // STag and offset of a segment without octets are not looked at (RFC 5041 section 5.2).
        if !payload.is_empty() {
            let to = self.admit_write(header, payload.len(), local)?;
            local.memory.place(to, payload);
        }
        Ok(Mark::Quiet)
    }

    #[inline]
    fn admit_write<M>(
        &self,
        header: &Tagged,
        len: usize,
        local: &Local<'_, M>,
    ) -> Result<Span, Reject> {
        let len = u32::try_from(len).map_err(|_| Reject::StagBounds)?;
        local
            .stags
            .admit(
                self.outfit.party,
                header.stag,
                header.to,
                len,
                Access::Write,
            )
            .map_err(|violation| match violation {
                Violation::Invalid => Reject::StagInvalid,
                Violation::Foreign => Reject::StagForeign,
                Violation::Rights => Reject::StagRights,
                Violation::Wrap => Reject::StagWrap,
                Violation::Bounds => Reject::StagBounds,
            })
    }

    #[inline]
    fn place_response<M: Memory>(
        &mut self,
        header: &Tagged,
        payload: &[u8],
        memory: &mut M,
    ) -> Result<Mark, Reject> {
        if !payload.is_empty() {
            let to = self.reads.place(header, payload.len(), self.tiling)?;
            memory.place(to, payload);
        }
        Ok(mark(header.last, Mark::ReadResponse))
    }

    fn place_request(
        &mut self,
        header: &Untagged,
        segment: &[u8],
        payload: &[u8],
    ) -> Result<Mark, Reject> {
        let room = |_: &_| READ_REQUEST_LEN;
        let buffer = self
            .requests
            .place(header, segment, payload.len(), self.tiling, room)?;
        put(&mut buffer.0, header.mo, payload);
        Ok(mark(header.last, Mark::ReadRequest))
    }

    fn place_terminate(
        &mut self,
        header: &Untagged,
        segment: &[u8],
        payload: &[u8],
    ) -> Result<Mark, Reject> {
        let room = |_: &_| TERMINATE_LEN;
        let buffer = self
            .terminates
            .place(header, segment, payload.len(), self.tiling, room)?;
        put(&mut buffer.0, header.mo, payload);
        Ok(mark(header.last, Mark::Terminate))
    }
}

#[inline]
fn mark(last: bool, mark: Mark) -> Mark {
    if last { mark } else { Mark::Quiet }
}

/// Copies a payload to its place in a small buffer, which the queue has found long enough.
fn put(buffer: &mut [u8], mo: u32, payload: &[u8]) {
    let from = mo as usize;
    if let Some(place) = buffer.get_mut(from..from.saturating_add(payload.len())) {
        place.copy_from_slice(payload);
    }
}
