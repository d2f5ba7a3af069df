//! A macro with the methods that stores with a cache ([`super::cache`], [`super::read_buffer`]) pass on to
//! the store behind them.

/// Writes the methods of a [`Store`](super::Store) that are the same in each store of this kind. Those that
/// change an object call `self.forget` with its path, and then `self.inner`. All others call only
/// `self.inner`.
macro_rules! forwarded {
    () => {
        fn location(&self) -> &str {
            self.inner.location()
        }

        fn expect_commit(&self) {
            self.inner.expect_commit();
        }

        fn put_if_absent(&self, path: &str, data: Bytes) -> Result<PutOutcome> {
            self.forget(path);
            self.inner.put_if_absent(path, data)
        }

        fn put_if_absent_lightly(&self, path: &str, data: Bytes) -> Result<PutOutcome> {
            self.forget(path);
            self.inner.put_if_absent_lightly(path, data)
        }

        fn put_after(&self, path: &str, data: Bytes, after: &[String]) -> Result<PutOutcome> {
            self.forget(path);
            self.inner.put_after(path, data, after)
        }

        fn stage(
            &self,
            folder: &str,
            data: &Bytes,
            after: &[String],
        ) -> Result<Option<Box<dyn StagedObject>>> {
            self.inner.stage(folder, data, after)
        }

        fn put_unsynced(&self, path: &str, data: Bytes) -> Result<()> {
            self.forget(path);
            self.inner.put_unsynced(path, data)
        }

        fn sync(&self, paths: &[String]) -> Result<()> {
            self.inner.sync(paths)
        }

        fn is_remote(&self) -> bool {
            self.inner.is_remote()
        }

        fn is_brief(&self) -> bool {
            self.inner.is_brief()
        }

        fn put(&self, path: &str, data: Bytes) -> Result<()> {
            self.forget(path);
            self.inner.put(path, data)
        }

        fn copy_source(&self, path: &str) -> Result<CopySource> {
            self.inner.copy_source(path)
        }

        fn copy(&self, source: &CopySource, to: &str) -> Result<bool> {
            self.forget(to);
            self.inner.copy(source, to)
        }

        fn writer(&self, path: &str) -> Result<Box<dyn ObjectWriter>> {
            self.forget(path);
            self.inner.writer(path)
        }

        fn delete(&self, path: &str) -> Result<bool> {
            self.forget(path);
            self.inner.delete(path)
        }

        fn delete_all(&self, paths: &[&str]) -> Result<u64> {
            paths.iter().for_each(|path| self.forget(path));
            self.inner.delete_all(paths)
        }

        fn remove_empty_directories(&self, prefix: &str) -> Result<u64> {
            self.inner.remove_empty_directories(prefix)
        }

        fn outside(&self, location: &str) -> Result<(Arc<dyn Store>, String)> {
            self.inner.outside(location)
        }
    };
}
pub(super) use forwarded;
