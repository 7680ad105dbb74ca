//! Copies of the library have state of their own.

use usrsctp_sys::{Instance, types};

#[test]
fn copies_share_no_state_and_go_to_the_next_user() {
    let first = match Instance::take() {
        Ok(first) => first,
        Err(absent) => {
            println!("SKIPPED: {absent}");
            return;
        }
    };
    let second = Instance::take().expect("a copy from memory");
    assert!(first.is_fresh());
    assert!(second.is_fresh());
    assert_ne!(
        first.usrsctp_conninput as usize,
        second.usrsctp_conninput as usize
    );

    // SAFETY: set up once, with no callbacks.
    unsafe { (first.usrsctp_init_nothreads)(0, None, None) };
    let made = |copy: &Instance| {
        // SAFETY: a copy that is not set up says so.
        let socket = unsafe {
            (copy.usrsctp_socket)(
                libc::AF_INET,
                libc::SOCK_SEQPACKET,
                libc::IPPROTO_SCTP,
                None,
                None,
                0,
                std::ptr::null_mut(),
            )
        };
        !std::ptr::eq(socket, std::ptr::null::<types::socket>())
    };
    assert!(made(&first));
    assert!(!made(&second), "set up by the first one's call");

    let address = second.usrsctp_conninput as usize;
    drop(second);
    let third = Instance::take().expect("the one given back");
    assert!(!third.is_fresh());
    assert_eq!(third.usrsctp_conninput as usize, address);
}
