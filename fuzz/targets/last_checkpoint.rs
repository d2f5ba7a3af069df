#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| deltaic::fuzzing::last_checkpoint(data));
