//! What the stand-in does with work.

#![expect(unsafe_code, reason = "a device reaches memory by addresses")]

use super::{Books, Bound, Receive, Taken};
use rdma_core_sys as rdma;
use std::ptr;

/// Copies octets between addresses, as a device does.
///
/// # Safety
///
/// Both are good for as many octets, and nobody has a slice of the second.
unsafe fn copy(from: u64, to: u64, length: u32) {
    let from: *const u8 = ptr::with_exposed_provenance(from as usize);
    let to: *mut u8 = ptr::with_exposed_provenance_mut(to as usize);
    // SAFETY: the caller's promise.
    unsafe { to.copy_from(from, length as usize) };
}

impl Books {
    /// A request was posted.
    pub(super) fn post(&mut self, number: u32, taken: Taken) {
        let pair = &mut self.pairs[number as usize];
        pair.log
            .push((taken.request.opcode, taken.request.signalled));
        if pair.failed {
            self.complete(number, taken.request.ticket, rdma::IBV_WC_WR_FLUSH_ERR);
        } else if pair.waiting.is_empty() {
            self.carry_out(number, taken);
        } else {
            pair.waiting.push_back(taken);
        }
    }

    /// A receive was posted: what waits at the peer for it goes on.
    pub(super) fn receive(&mut self, number: u32, receive: Receive) {
        let pair = &mut self.pairs[number as usize];
        if pair.failed {
            self.complete(number, receive.ticket, rdma::IBV_WC_WR_FLUSH_ERR);
            return;
        }
        pair.receives.push_back(receive);
        let Some(peer) = pair.peer else {
            return;
        };
        let waiting = std::mem::take(&mut self.pairs[peer as usize].waiting);
        for taken in waiting {
            let pair = &mut self.pairs[peer as usize];
            if pair.failed {
                self.complete(peer, taken.request.ticket, rdma::IBV_WC_WR_FLUSH_ERR);
            } else if pair.waiting.is_empty() {
                self.carry_out(peer, taken);
            } else {
                pair.waiting.push_back(taken);
            }
        }
    }

    fn push(&mut self, number: u32, completion: rdma::ibv_wc) {
        let queue = self.pairs[number as usize].queue;
        self.queues[queue].push_back(completion);
    }

    fn complete(&mut self, number: u32, ticket: u64, status: rdma::ibv_wc_status) {
        let completion = rdma::ibv_wc {
            wr_id: ticket,
            status,
            // After an error nothing but these two can be believed: so it is here.
            opcode: if status == 0 { 0 } else { 0xbad },
            ..rdma::ibv_wc::default()
        };
        self.push(number, completion);
    }

    /// Moves a queue pair to error.
    pub(super) fn fail(&mut self, number: u32) {
        let pair = &mut self.pairs[number as usize];
        if std::mem::replace(&mut pair.failed, true) {
            return;
        }
        let (waiting, receives) = (
            std::mem::take(&mut pair.waiting),
            std::mem::take(&mut pair.receives),
        );
        for taken in waiting {
            self.complete(number, taken.request.ticket, rdma::IBV_WC_WR_FLUSH_ERR);
        }
        for receive in receives {
            self.complete(number, receive.ticket, rdma::IBV_WC_WR_FLUSH_ERR);
        }
    }

    fn carry_out(&mut self, number: u32, taken: Taken) {
        let request = taken.request;
        let done = match request.opcode {
            rdma::IBV_WR_SEND | rdma::IBV_WR_SEND_WITH_INV => self.send(number, &taken),
            rdma::IBV_WR_RDMA_WRITE | rdma::IBV_WR_RDMA_READ => self.access(number, &taken),
            rdma::IBV_WR_BIND_MW => {
                let bound = Bound {
                    pair: number,
                    address: request.local,
                    length: request.length.into(),
                    access: request.access,
                };
                let number = request.key >> 8;
                let other = self.bound.keys().any(|key| key >> 8 == number);
                self.bound.insert(request.key, bound);
                if other {
                    Err(rdma::IBV_WC_MW_BIND_ERR)
                } else {
                    Ok(true)
                }
            }
            rdma::IBV_WR_LOCAL_INV => match self.bound.remove(&request.key) {
                Some(bound) if bound.pair == number => Ok(true),
                _ => Err(rdma::IBV_WC_LOC_QP_OP_ERR),
            },
            other => panic!("opcode {other}"),
        };
        match done {
            Ok(true) if request.signalled => self.complete(number, request.ticket, 0),
            Ok(true) => {}
            Ok(false) => self.pairs[number as usize].waiting.push_back(taken),
            Err(status) => {
                self.complete(number, request.ticket, status);
                self.fail(number);
            }
        }
    }

    /// False when there is no receive.
    fn send(&mut self, number: u32, taken: &Taken) -> Result<bool, rdma::ibv_wc_status> {
        let peer = self.pairs[number as usize].peer.expect("connected");
        if self.pairs[peer as usize].failed {
            return Err(rdma::IBV_WC_RETRY_EXC_ERR);
        }
        let Some(receive) = self.pairs[peer as usize].receives.pop_front() else {
            return Ok(false);
        };
        let length = u32::try_from(taken.octets.len()).expect("below 4 GiB");
        if length > receive.room {
            self.complete(peer, receive.ticket, rdma::IBV_WC_LOC_LEN_ERR);
            self.fail(peer);
            return Err(rdma::IBV_WC_REM_INV_REQ_ERR);
        }
        let mut completion = rdma::ibv_wc {
            wr_id: receive.ticket,
            byte_len: length,
            wc_flags: rdma::IBV_WC_GRH,
            ..rdma::ibv_wc::default()
        };
        if taken.request.opcode == rdma::IBV_WR_SEND_WITH_INV {
            let key = taken.request.key;
            if self
                .bound
                .remove(&key)
                .is_none_or(|bound| bound.pair != peer)
            {
                self.complete(peer, receive.ticket, rdma::IBV_WC_REM_INV_REQ_ERR);
                self.fail(peer);
                return Err(rdma::IBV_WC_REM_ACCESS_ERR);
            }
            completion.wc_flags |= match self.quirk {
                true => rdma::IBV_WC_IP_CSUM_OK,
                false => rdma::IBV_WC_WITH_INV,
            };
            completion.__bindgen_anon_1.invalidated_rkey = key;
        }
        // SAFETY: a posted receive is good for its room, and the message is no longer.
        unsafe {
            copy(
                taken.octets.as_ptr().expose_provenance() as u64,
                receive.address,
                length,
            )
        };
        self.push(peer, completion);
        Ok(true)
    }

    fn access(&mut self, number: u32, taken: &Taken) -> Result<bool, rdma::ibv_wc_status> {
        let request = taken.request;
        let peer = self.pairs[number as usize].peer.expect("connected");
        if self.pairs[peer as usize].failed {
            return Err(rdma::IBV_WC_RETRY_EXC_ERR);
        }
        if request.length == 0 {
            return Ok(true);
        }
        let writes = request.opcode == rdma::IBV_WR_RDMA_WRITE;
        let right = match writes {
            true => rdma::IBV_ACCESS_REMOTE_WRITE,
            false => rdma::IBV_ACCESS_REMOTE_READ,
        };
        let allowed = self.bound.get(&request.key).is_some_and(|bound| {
            let within = request.remote.checked_sub(bound.address);
            let fits = within.and_then(|at| bound.length.checked_sub(at));
            bound.pair == peer
                && bound.access & right != 0
                && fits.is_some_and(|room| u64::from(request.length) <= room)
        });
        if !allowed {
            self.fail(peer);
            return Err(rdma::IBV_WC_REM_ACCESS_ERR);
        }
        let (from, to) = match writes {
            true => (request.local, request.remote),
            false => (request.remote, request.local),
        };
        // SAFETY: what is bound is memory of the other end's arena, and what is local is of this
        // end's: posted for as long.
        unsafe { copy(from, to, request.length) };
        Ok(true)
    }
}
