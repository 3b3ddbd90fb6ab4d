//! What the compiled speech engine demands of the processor.
//!
//! GGML chooses its instructions when it is compiled, and a processor without them ends the process with SIGILL. All
//! other code of the workspace is compiled for the oldest processor of its architecture, and looks at run time for
//! more: so it can check this before the engine runs.

/// The instruction sets that the engine was compiled for and this processor lacks, by their usual names.
///
/// An engine that was compiled natively (`-march=native`) may use further sets, which it does not report. On other
/// architectures than x86-64 the list is always empty.
pub fn missing_instructions() -> Vec<&'static str> {
    demanded().into_iter().filter(|(_, is_used, is_here)| *is_used && !*is_here).map(|(name, ..)| name).collect()
}

/// Whether the engine multiplies bfloat16 by instructions made for it.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "the engine reports what it was compiled for through C functions only")]
pub(super) fn multiplies_bf16() -> bool {
    // SAFETY: a function without arguments that returns a constant.
    unsafe { whisper_rs::whisper_rs_sys::ggml_cpu_has_avx512_bf16() != 0 }
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn multiplies_bf16() -> bool {
    false
}

/// Name, whether the engine uses it, whether the processor has it.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "the engine reports what it was compiled for through C functions only")]
fn demanded() -> Vec<(&'static str, bool, bool)> {
    use std::arch::is_x86_feature_detected as has;

    use whisper_rs::whisper_rs_sys as sys;

    // SAFETY: functions without arguments that return a constant.
    unsafe {
        vec![
            ("SSSE3", sys::ggml_cpu_has_ssse3() != 0, has!("ssse3")),
            ("AVX", sys::ggml_cpu_has_avx() != 0, has!("avx")),
            ("AVX2", sys::ggml_cpu_has_avx2() != 0, has!("avx2")),
            ("BMI2", sys::ggml_cpu_has_bmi2() != 0, has!("bmi2")),
            ("F16C", sys::ggml_cpu_has_f16c() != 0, has!("f16c")),
            ("FMA", sys::ggml_cpu_has_fma() != 0, has!("fma")),
            ("AVX-VNNI", sys::ggml_cpu_has_avx_vnni() != 0, has!("avxvnni")),
            ("AVX512F", sys::ggml_cpu_has_avx512() != 0, has!("avx512f")),
            ("AVX512-VBMI", sys::ggml_cpu_has_avx512_vbmi() != 0, has!("avx512vbmi")),
            ("AVX512-VNNI", sys::ggml_cpu_has_avx512_vnni() != 0, has!("avx512vnni")),
            ("AVX512-BF16", sys::ggml_cpu_has_avx512_bf16() != 0, has!("avx512bf16")),
        ]
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn demanded() -> Vec<(&'static str, bool, bool)> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_the_tests_has_what_they_were_compiled_for() {
        assert_eq!(missing_instructions(), [""; 0]);
        // A list in which nothing is used would prove nothing.
        assert!(cfg!(not(target_arch = "x86_64")) || demanded().iter().any(|(_, is_used, _)| *is_used));
    }
}
