//! The Hilbert index of any number of columns and bits.
//!
//! J. Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707 (2004): coordinates are
//! turned in place into the "transpose" of the index, whose bits are the index read across the columns, most
//! significant first. Cost: columns x bits.

/// Replaces coordinates (columns of equal length, each value below 2^bits) by the transpose of each row's
/// index, in place.
pub fn transpose(columns: &mut [Vec<u32>], bits: u32) {
    let rows = columns.first().map_or(0, Vec::len);
    let mut point = vec![0; columns.len()];
    for i in 0..rows {
        columns.iter().zip(&mut point).for_each(|(column, x)| *x = column[i]);
        transpose_point(&mut point, bits);
        columns.iter_mut().zip(&point).for_each(|(column, x)| column[i] = *x);
    }
}

fn transpose_point(x: &mut [u32], bits: u32) {
    let n = x.len();
    if n == 0 || bits == 0 {
        return;
    }
    // Undo the rotations, from the coarsest square to the finest.
    for level in (1..bits).rev() {
        let (q, p) = (1_u32 << level, (1_u32 << level) - 1);
        for i in 0..n {
            if x[i] & q != 0 {
                x[0] ^= p;
            } else {
                let t = (x[0] ^ x[i]) & p;
                x[0] ^= t;
                x[i] ^= t;
            }
        }
    }
    // Gray code.
    for i in 1..n {
        x[i] ^= x[i - 1];
    }
    let mut t = 0;
    for level in (1..bits).rev() {
        if x[n - 1] & 1 << level != 0 {
            t ^= (1 << level) - 1;
        }
    }
    x.iter_mut().for_each(|v| *v ^= t);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zorder::interleave;

    fn index(point: &[u32], bits: u32) -> u128 {
        let mut columns: Vec<Vec<u32>> = point.iter().map(|&x| vec![x]).collect();
        transpose(&mut columns, bits);
        interleave::rows(&columns).iter().fold(0, |key, &byte| key << 8 | u128::from(byte))
    }

    #[test]
    fn visits_every_cell_once_and_steps_to_a_neighbour() {
        for (n, bits) in [(1, 5), (2, 1), (2, 4), (3, 3), (4, 2), (5, 2)] {
            let side = 1_u32 << bits;
            let cells = side.pow(n as u32);
            let mut order = vec![None; cells as usize];
            for cell in 0..cells {
                let point: Vec<u32> = (0..n).map(|d| cell / side.pow(d as u32) % side).collect();
                let at = index(&point, bits) as usize;
                assert!(order[at].replace(point).is_none(), "index {at} twice");
            }
            let order: Vec<Vec<u32>> = order.into_iter().map(Option::unwrap).collect();
            for pair in order.windows(2) {
                let distance: u32 = pair[0].iter().zip(&pair[1]).map(|(a, b)| a.abs_diff(*b)).sum();
                assert_eq!(distance, 1, "{n} columns, {bits} bits: {pair:?}");
            }
        }
    }
}
