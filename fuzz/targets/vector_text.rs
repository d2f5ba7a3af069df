#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| deltaic::fuzzing::vector_text(data));
