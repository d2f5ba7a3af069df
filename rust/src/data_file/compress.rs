//! Numbers that go on, pushed together eight at a time: by the processor's own instruction (AVX-512) where it has it, else without a
//! branch on each.

use arrow::datatypes::ArrowNativeType;

/// Writes the values whose bit is set to the front of `kept` and says how many these are. A group is written whole before the next is
/// written over its end, so `kept` has room for eight more. `whole`: a look whether nothing of a group goes pays, as few do.
pub fn compress<T: ArrowNativeType>(blocks: &[[T; 8]], bits: &[u8], kept: &mut [T], whole: bool) -> usize {
    match (by_instruction(blocks, bits, kept), whole) {
        (Some(count), _) => count,
        (None, true) => one_by_one::<_, true>(blocks, bits, kept),
        (None, false) => one_by_one::<_, false>(blocks, bits, kept),
    }
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
            into[place & 7] = *value; // one that goes is written over by the next
            place = place.wrapping_add(usize::from(bits >> index & 1));
        }
        to += place;
    }
    to
}

#[cfg(not(target_arch = "x86_64"))]
fn by_instruction<T: ArrowNativeType>(_: &[[T; 8]], _: &[u8], _: &mut [T]) -> Option<usize> {
    None
}

/// `None`: this processor has no such instruction, or none for numbers of this width.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn by_instruction<T: ArrowNativeType>(blocks: &[[T; 8]], bits: &[u8], kept: &mut [T]) -> Option<usize> {
    let bits = bits.get(..blocks.len())?;
    if !(is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("popcnt")) {
        return None;
    }
    // SAFETY: the processor has the instruction.
    let count = unsafe { instruction::count(bits) };
    if kept.len() < count + 8 {
        return None;
    }
    // SAFETY: the processor has the instructions. There is a byte of `bits` for each of `blocks`, so what is read is theirs; a group is
    // written behind all that was kept before it, `count` values at most, and `kept` has eight more. Any bits are a number of this width.
    match size_of::<T>() {
        8 => unsafe { instruction::of_8_bytes(blocks.as_ptr().cast(), bits, kept.as_mut_ptr().cast()) },
        4 => unsafe { instruction::of_4_bytes(blocks.as_ptr().cast(), bits, kept.as_mut_ptr().cast()) },
        _ => return None,
    }
    Some(count)
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
    /// The processor has these features, `from` holds eight values for each of `bits`, `into` has room for those kept and eight more.
    #[target_feature(enable = "avx512f,popcnt")]
    pub(super) unsafe fn of_8_bytes(mut from: *const i64, bits: &[u8], mut into: *mut i64) {
        for &bits in bits {
            // SAFETY: as the caller says.
            unsafe {
                _mm512_storeu_epi64(into, _mm512_maskz_compress_epi64(bits, _mm512_loadu_epi64(from)));
                from = from.add(8);
                into = into.add(bits.count_ones() as usize);
            }
        }
    }

    /// # Safety
    /// As above.
    #[target_feature(enable = "avx512f,popcnt")]
    pub(super) unsafe fn of_4_bytes(mut from: *const i32, bits: &[u8], mut into: *mut i32) {
        for &bits in bits {
            // SAFETY: as the caller says; of the wide register only the eight lower values are loaded and stored.
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

    type Way<T> = fn(&[[T; 8]], &[u8], &mut [T]) -> Option<usize>;

    /// The oracle: a list of the values whose bit is set.
    fn agree<T: ArrowNativeType>(blocks: &[[T; 8]], bits: &[u8]) {
        let kept = |(row, value): (usize, &T)| (bits[row / 8] >> (row % 8) & 1 == 1).then_some(*value);
        let expected: Vec<T> = blocks.iter().flatten().enumerate().filter_map(kept).collect();
        let ways: [Way<T>; 3] = [
            by_instruction,
            |blocks, bits, kept| Some(one_by_one::<_, true>(blocks, bits, kept)),
            |blocks, bits, kept| Some(one_by_one::<_, false>(blocks, bits, kept)),
        ];
        for way in ways {
            let mut kept = vec![T::default(); expected.len() + 8];
            let Some(count) = way(blocks, bits, &mut kept) else { continue };
            assert_eq!(&kept[..count], expected);
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
    fn too_little_room_is_not_written_to() {
        assert_eq!(by_instruction(&[[1_i64; 8]], &[u8::MAX], &mut [0; 15]), None);
        assert_eq!(by_instruction(&[[1_i64; 8]], &[], &mut [0; 16]), None);
    }
}
