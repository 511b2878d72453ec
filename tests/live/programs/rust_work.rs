// SPDX-License-Identifier: GPL-3.0-or-later
// A library of Rust whose functions have generics, a trait and a closure; it computes until it has counted to `n`.
use std::fmt::Debug;

pub struct Parser<T> {
    pub items: Vec<T>,
}

pub trait Eat {
    fn eat(&mut self, n: u64) -> u64;
}

impl<T: Clone + Debug> Eat for Parser<T> {
    #[inline(never)]
    fn eat(&mut self, n: u64) -> u64 {
        (0..n).fold(0, |sum: u64, i| sum.wrapping_mul(31).wrapping_add(i ^ self.items.len() as u64))
    }
}

#[inline(never)]
fn drive<F: FnMut(u64) -> u64>(mut each: F, n: u64) -> u64 {
    (0..n).fold(1, |sum: u64, i| sum.rotate_left(3) ^ each(i))
}

#[no_mangle]
pub extern "C" fn rust_work(n: u64) -> u64 {
    let mut parser = Parser { items: vec![Some("x".to_string())] };
    drive(|x| x.wrapping_mul(3), n) ^ parser.eat(n)
}
