//! Interleaves bits: the most significant bit of each column, then the next bit of each column, and so on,
//! beginning with the first column.
//!
//! Each column has 32 bits, so a row of k columns has a key of 4·k bytes, which sorts in Z-order
//! (delta-spark's `interleave_bits`). For up to 8 columns, a table spreads one byte of a column over k bytes,
//! so each column needs four look-ups per row.

/// Returns the rows of columns of equal length, one after the other, 4·k bytes each.
pub fn rows(columns: &[Vec<u32>]) -> Vec<u8> {
    let k = columns.len();
    let n = columns.first().map_or(0, Vec::len);
    let mut out = vec![0; 4 * k * n];
    if k == 0 || n == 0 {
        return out;
    }
    match k {
        1 => out
            .chunks_exact_mut(4)
            .zip(&columns[0])
            .for_each(|(row, id)| row.copy_from_slice(&id.to_be_bytes())),
        2..=8 => by_table(columns, &mut out),
        _ => by_bit(columns, &mut out),
    }
    out
}

fn by_table(columns: &[Vec<u32>], out: &mut [u8]) {
    let k = columns.len();
    let spread = spread_table(k);
    for (i, row) in out.chunks_exact_mut(4 * k).enumerate() {
        for (place, bytes) in row.chunks_exact_mut(k).enumerate() {
            let shift = 24 - 8 * place;
            let mut word = 0_u64;
            for (c, column) in columns.iter().enumerate() {
                word |= spread[(column[i] >> shift) as usize & 0xFF] << (k - 1 - c);
            }
            bytes.copy_from_slice(&word.to_be_bytes()[8 - k..]);
        }
    }
}

/// Returns a table that moves bit j of a byte to bit j·k.
fn spread_table(k: usize) -> [u64; 256] {
    std::array::from_fn(|byte| (0..8).filter(|j| byte >> j & 1 == 1).map(|j| 1_u64 << (j * k)).sum())
}

fn by_bit(columns: &[Vec<u32>], out: &mut [u8]) {
    let k = columns.len();
    for (i, row) in out.chunks_exact_mut(4 * k).enumerate() {
        for at in 0..32 * k {
            let bit = columns[at % k][i] >> (31 - at / k) & 1;
            row[at / 8] |= (bit as u8) << (7 - at % 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_columns_of_the_walk_through() {
        // "A walk through Delta's Z-order": x = 97, y = 214, y before x -> 46633
        let row = rows(&[vec![214], vec![97]]);
        assert_eq!(u64::from_be_bytes(row.try_into().unwrap()), 46633);
    }

    proptest! {
        #[test]
        fn tables_give_what_bits_give(
            columns in (1..12_usize)
                .prop_flat_map(|k| prop::collection::vec(prop::collection::vec(any::<u32>(), 5), k)),
        ) {
            let mut slow = vec![0; 4 * columns.len() * 5];
            by_bit(&columns, &mut slow);
            prop_assert_eq!(rows(&columns), slow);
        }
        #[test]
        fn monotone_in_each_column(a in any::<u32>(), b in any::<u32>(), c in any::<u32>()) {
            let key = |x: u32, y: u32| rows(&[vec![x], vec![y], vec![c]]);
            prop_assert_eq!(a.cmp(&b), key(a, c).cmp(&key(b, c)));
            prop_assert_eq!(a.cmp(&b), key(c, a).cmp(&key(c, b)));
        }
    }
}
