#![allow(clippy::unwrap_used)]

use super::*;
use crate::store::{ObjectMeta, ObjectWriter, PutOutcome};
use std::ops::Range;
use std::sync::Mutex;

/// Takes a number of files, then fails.
#[derive(Debug, Default)]
struct Filling {
    room: usize,
    files: Mutex<Vec<(String, usize)>>,
}

impl Store for Filling {
    fn put(&self, path: &str, data: Bytes) -> Result<()> {
        let mut files = self.files.lock().unwrap();
        if files.len() == self.room {
            return Err(Error::new(Kind::Io, "no space left"));
        }
        files.push((path.to_owned(), data.len()));
        Ok(())
    }
    fn delete(&self, path: &str) -> Result<bool> {
        self.files.lock().unwrap().retain(|file| file.0 != path);
        Ok(true)
    }
    fn location(&self) -> &str {
        "memory://filling"
    }
    fn list_from(&self, _: &str, _: Option<&str>, _: bool) -> Result<Vec<ObjectMeta>> {
        unreachable!()
    }
    fn head(&self, _: &str) -> Result<Option<ObjectMeta>> {
        unreachable!()
    }
    fn get(&self, _: &str) -> Result<Bytes> {
        unreachable!()
    }
    fn get_ranges(&self, _: &str, _: &[Range<u64>]) -> Result<Vec<Bytes>> {
        unreachable!()
    }
    fn put_if_absent(&self, _: &str, _: Bytes) -> Result<PutOutcome> {
        unreachable!()
    }
    fn writer(&self, _: &str) -> Result<Box<dyn ObjectWriter>> {
        unreachable!()
    }
    fn remove_empty_directories(&self, _: &str) -> Result<u64> {
        unreachable!()
    }
    fn outside(&self, _: &str) -> Result<(Arc<dyn Store>, String)> {
        unreachable!()
    }
}

fn pack(store: &Arc<dyn Store>, target_size: usize, count: u64) -> Result<(Vec<String>, u64)> {
    let packing = VectorTarget { inline: false, prefix_length: 0, target_size };
    let mut packer = Packer::new(store, &packing);
    for row in 0..count {
        packer.add(&DeletionVector::from_rows(vec![row]).unwrap())?;
    }
    packer.finish()
}

/// Vectors have the sizes that delta-spark's DeletionVectorsSuite ("Multiple DVs per file") expects: 10
/// vectors of 34 bytes each.
#[test]
fn vectors_of_a_file() {
    for (target_size, files) in [(2, 10), (200, 3), (2 << 20, 1)] {
        let filling = Arc::new(Filling { room: 10, ..Filling::default() });
        let store: Arc<dyn Store> = filling.clone();
        let (written, bytes) = pack(&store, target_size, 10).unwrap();
        let there = filling.files.lock().unwrap();
        assert_eq!((written.len(), there.len()), (files, files));
        assert_eq!(bytes, there.iter().map(|file| file.1 as u64).sum::<u64>());
        assert_eq!(bytes, files as u64 + 10 * 42);
    }
}

#[test]
fn nothing_stays_of_a_write_that_failed() {
    let filling = Arc::new(Filling { room: 3, ..Filling::default() });
    let store: Arc<dyn Store> = filling.clone();
    assert!(pack(&store, 2, 10).unwrap_err().to_string().contains("no space left"));
    assert!(filling.files.lock().unwrap().is_empty());
}

#[test]
fn prefixes_are_letters_and_digits() {
    assert_eq!(random_prefix(0), "");
    let prefix = random_prefix(40);
    assert!(prefix.len() == 40 && prefix.bytes().all(|letter| letter.is_ascii_alphanumeric()));
    assert_ne!(prefix, random_prefix(40));
    let long = VectorTarget { inline: false, prefix_length: 201, target_size: 1 };
    assert!(check(&long).unwrap_err().to_string().contains("too long; found 201"));
}
