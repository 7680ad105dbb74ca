//! `rpcrdmad`.

fn main() {}
