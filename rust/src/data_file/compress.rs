//! Copies the numbers that a mask selects to the front of an array, eight at a time: by a processor
//! instruction (AVX-512) if there is one, else without a branch for each number. Example: the mask 0110 of
//! the numbers 5 6 7 8 gives 6 7.

use arrow::datatypes::ArrowNativeType;

/// Returns the values whose bit is set. `room`: an upper bound of their number. `whole`: true to check first
/// if all eight values of a group are kept, which is faster if few values are removed.
pub fn compress<T: ArrowNativeType>(blocks: &[[T; 8]], bits: &[u8], room: usize, whole: bool) -> Vec<T> {
    // Each group is written as a whole; the next one overwrites its end.
    let mut kept = Vec::with_capacity(room + 8);
    if !by_instruction(blocks, bits, &mut kept) {
        kept.resize(room + 8, T::default());
        let count = if whole {
            one_by_one::<_, true>(blocks, bits, &mut kept)
        } else {
            one_by_one::<_, false>(blocks, bits, &mut kept)
        };
        kept.truncate(count);
    }
    kept
}

fn one_by_one<T: ArrowNativeType, const LOOK: bool>(blocks: &[[T; 8]], bits: &[u8], kept: &mut [T]) -> usize {
    let mut to = 0;
    for (block, &bits) in blocks.iter().zip(bits) {
        let Some(into) = kept[to..].first_chunk_mut::<8>() else { break };
        if LOOK && bits == u8::MAX {
            *into = *block;
            to += 8;
            continue;
        }
        let mut place = 0_usize;
        for (index, value) in block.iter().enumerate() {
            into[place & 7] = *value; // a value that is not kept is overwritten by the next
            place = place.wrapping_add(usize::from(bits >> index & 1));
        }
        to += place;
    }
    to
}

#[cfg(not(target_arch = "x86_64"))]
fn by_instruction<T: ArrowNativeType>(_: &[[T; 8]], _: &[u8], _: &mut Vec<T>) -> bool {
    false
}

/// Appends the values whose bit is set to `kept`, by a processor instruction. Returns false, and appends
/// nothing, if the processor has no such instruction for numbers of this width, or if `kept` has too little
/// room.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn by_instruction<T: ArrowNativeType>(blocks: &[[T; 8]], bits: &[u8], kept: &mut Vec<T>) -> bool {
    let Some(bits) = bits.get(..blocks.len()) else { return false };
    if !(is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("popcnt")) {
        return false;
    }
    // SAFETY: `is_x86_feature_detected` has found the instruction.
    let count = unsafe { instruction::count(bits) };
    let free = kept.spare_capacity_mut();
    if free.len() < count + 8 {
        return false;
    }
    // SAFETY: `is_x86_feature_detected` has found the instructions. `bits` has one byte for each block, so
    // only `blocks` are read. Each group of eight is written after the values that were kept before it, which
    // are at most `count`, and `free` has room for `count` and eight values. Any bits are a valid number of
    // this width.
    match size_of::<T>() {
        8 => unsafe { instruction::of_8_bytes(blocks.as_ptr().cast(), bits, free.as_mut_ptr().cast()) },
        4 => unsafe { instruction::of_4_bytes(blocks.as_ptr().cast(), bits, free.as_mut_ptr().cast()) },
        _ => return false,
    }
    // SAFETY: `count` values have been written after the values that `kept` had before.
    unsafe { kept.set_len(kept.len() + count) };
    true
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod instruction {
    use std::arch::x86_64::*;

    #[target_feature(enable = "popcnt")]
    pub(super) fn count(bits: &[u8]) -> usize {
        bits.iter().map(|bits| bits.count_ones() as usize).sum()
    }

    /// # Safety
    /// The processor must have these features. `from` must hold eight values for each byte of `bits`, and
    /// `into` must have room for the values whose bit is set and eight more.
    #[target_feature(enable = "avx512f,popcnt")]
    pub(super) unsafe fn of_8_bytes(mut from: *const i64, bits: &[u8], mut into: *mut i64) {
        for &bits in bits {
            // SAFETY: the caller guarantees the features, the values of `from` and the room of `into`.
            unsafe {
                _mm512_storeu_epi64(into, _mm512_maskz_compress_epi64(bits, _mm512_loadu_epi64(from)));
                from = from.add(8);
                into = into.add(bits.count_ones() as usize);
            }
        }
    }

    /// # Safety
    /// The conditions of `of_8_bytes`.
    #[target_feature(enable = "avx512f,popcnt")]
    pub(super) unsafe fn of_4_bytes(mut from: *const i32, bits: &[u8], mut into: *mut i32) {
        for &bits in bits {
            // SAFETY: the caller guarantees the features, the values of `from` and the room of `into`. Only
            // the eight lower values of the register of sixteen are loaded and stored.
            unsafe {
                let block = _mm512_castsi256_si512(_mm256_loadu_si256(from.cast()));
                let kept = _mm512_maskz_compress_epi32(u16::from(bits), block);
                _mm256_storeu_si256(into.cast(), _mm512_castsi512_si256(kept));
                from = from.add(8);
                into = into.add(bits.count_ones() as usize);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Compares the function with its oracle: a list of the values whose bit is set.
    fn agree<T: ArrowNativeType>(blocks: &[[T; 8]], bits: &[u8]) {
        let kept = |(row, value): (usize, &T)| (bits[row / 8] >> (row % 8) & 1 == 1).then_some(*value);
        let expected: Vec<T> = blocks.iter().flatten().enumerate().filter_map(kept).collect();
        let mut room = vec![T::default(); expected.len() + 8];
        let ways = [one_by_one::<T, true>, one_by_one::<T, false>];
        for way in ways {
            let count = way(blocks, bits, &mut room);
            assert_eq!(&room[..count], expected);
        }
        for whole in [true, false] {
            assert_eq!(compress(blocks, bits, expected.len(), whole), expected);
        }
    }

    proptest! {
        #[test]
        fn all_ways_keep_the_same(groups in prop::collection::vec((any::<[i64; 8]>(), any::<u8>()), 0..70)) {
            let (wide, bits): (Vec<[i64; 8]>, Vec<u8>) = groups.into_iter().unzip();
            agree(&wide, &bits);
            agree(&wide.iter().map(|group| group.map(|value| value as i32)).collect::<Vec<_>>(), &bits);
            agree(&wide.iter().map(|group| group.map(|value| value as f64)).collect::<Vec<_>>(), &bits);
            agree(&wide.iter().map(|group| group.map(|value| value as i16)).collect::<Vec<_>>(), &bits);
            agree(&wide.iter().map(|group| group.map(i128::from)).collect::<Vec<_>>(), &bits);
        }
    }

    #[test]
    fn what_does_not_fit_is_not_written() {
        for mut short in [Vec::with_capacity(15), Vec::new()] {
            assert!(!by_instruction(&[[1_i64; 8]], &[u8::MAX], &mut short) && short.is_empty());
        }
        assert!(!by_instruction(&[[1_i64; 8]], &[], &mut Vec::with_capacity(16)));
    }
}
