//! The names of storage options: which exist for each store, which are refused, and which one a misspelt name
//! probably means.

use std::collections::BTreeMap;
use std::time::Duration;

use object_store::RetryConfig;

use crate::error::{Error, Kind, Result};

/// Keys of every store: of the HTTP client and of retries.
const CLIENT: [&str; 19] = [
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "timeout",
    "user_agent",
    "proxy_url",
    "proxy_ca_certificate",
    "proxy_excludes",
    "http1_only",
    "http2_only",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "randomize_addresses",
    "max_retries",
    "retry_timeout",
    "backoff_config_init_backoff",
    "backoff_config_max_backoff",
    "backoff_config_base",
    "default_content_type",
];

/// Keys of S3, Azure and Google Cloud Storage, as errors show them. Each is also accepted without its first
/// word.
const S3: [&str; 27] = [
    "aws_access_key_id",
    "aws_secret_access_key",
    "aws_session_token",
    "aws_profile",
    "aws_region",
    "aws_default_region",
    "aws_endpoint",
    "aws_endpoint_url",
    "aws_endpoint_url_s3",
    "aws_endpoint_url_sts",
    "aws_allow_http",
    "aws_virtual_hosted_style_request",
    "aws_s3_express",
    "aws_skip_signature",
    "aws_unsigned_payload",
    "aws_checksum_algorithm",
    "aws_conditional_put",
    "aws_copy_if_not_exists",
    "aws_request_payer",
    "aws_server_side_encryption",
    "aws_sse_kms_key_id",
    "aws_sse_bucket_key_enabled",
    "aws_sse_customer_key_base64",
    "aws_web_identity_token_file",
    "aws_role_arn",
    "aws_role_session_name",
    "aws_metadata_endpoint",
];
const AZURE: [&str; 19] = [
    "azure_storage_account_name",
    "azure_storage_account_key",
    "azure_storage_access_key",
    "azure_storage_sas_token",
    "azure_storage_sas_key",
    "azure_storage_token",
    "azure_storage_client_id",
    "azure_storage_client_secret",
    "azure_storage_tenant_id",
    "azure_storage_authority_id",
    "azure_storage_use_emulator",
    "azure_storage_endpoint",
    "azure_endpoint",
    "azure_allow_http",
    "azure_container_name",
    "azure_federated_token_file",
    "azure_msi_endpoint",
    "azure_use_azure_cli",
    "azure_skip_signature",
];
const GOOGLE: [&str; 7] = [
    "google_service_account",
    "google_service_account_path",
    "google_service_account_key",
    "google_application_credentials",
    "google_base_url",
    "google_bucket",
    "google_skip_signature",
];

/// Keys of locks, which are refused: other clients that commit under a lock would not notice commits without
/// it.
const LOCKS: [&str; 4] =
    ["s3_locking_provider", "delta_dynamo_table_name", "dynamo_lock_table_name", "dynamo_table_name"];

/// Keys by which deltalake allows commits without protection against other writers. They are ignored, as
/// deltaic always protects commits.
const NOT_NEEDED: [&str; 2] = ["s3_allow_unsafe_rename", "allow_unsafe_rename"];

/// Options of one store by object_store's names, and its retries.
#[derive(Debug)]
pub struct Keys {
    /// How often and how long requests are retried.
    pub retry: RetryConfig,
    /// The other options, by plain names.
    pub rest: BTreeMap<String, String>,
}

/// Returns an option's name in object_store's spelling.
pub fn plain(name: &str) -> String {
    name.to_ascii_lowercase().replace(['.', '-'], "_")
}

/// Separates the options for retries from all others. `place`: the store's URL, for errors.
pub fn sorted(options: &BTreeMap<String, String>, place: &str) -> Result<Keys> {
    let mut retry = RetryConfig::default();
    let mut rest = BTreeMap::new();
    for (name, value) in options {
        let wrong = |expected: &str| {
            Error::new(Kind::InvalidArgument, format!("storage option '{name}' has no valid value"))
                .at(place)
                .expected(expected)
        };
        let key = plain(name);
        let duration = || seconds(value).ok_or_else(|| wrong("seconds, like '30s'"));
        let short = key.trim_start_matches("aws_");
        match key.as_str() {
            "max_retries" => retry.max_retries = value.parse().map_err(|_| wrong("a number of attempts"))?,
            "retry_timeout" => retry.retry_timeout = duration()?,
            "backoff_config_init_backoff" => retry.backoff.init_backoff = duration()?,
            "backoff_config_max_backoff" => retry.backoff.max_backoff = duration()?,
            "backoff_config_base" => {
                retry.backoff.base = value
                    .parse()
                    .ok()
                    .filter(|base| *base >= 1.0)
                    .ok_or_else(|| wrong("a number of at least 1"))?;
            }
            _ if NOT_NEEDED.contains(&short) => {}
            _ if LOCKS.contains(&short) => {
                let refused = Error::new(
                    Kind::UnsupportedFeature,
                    format!("storage option '{name}': locks of other writers are not supported"),
                );
                return Err(refused
                    .at(place)
                    .expected("a table that all writers commit to by put-if-absent of the store"));
            }
            "aws_conditional_put" | "conditional_put" if !value.eq_ignore_ascii_case("etag") => {
                let refused = Error::new(
                    Kind::UnsafeStore,
                    format!("storage option '{name}' would make commits unsafe"),
                );
                return Err(refused.at(place).found(value).expected("'etag', or no such option"));
            }
            _ => {
                rest.insert(key, value.clone());
            }
        }
    }
    Ok(Keys { retry, rest })
}

/// Returns the error for a key that the store does not have.
pub fn unknown(name: &str, place: &str) -> Error {
    let scheme = super::path::scheme(place).unwrap_or_default();
    let own: &[&str] = match scheme {
        "s3" | "s3a" => &S3,
        "gs" => &GOOGLE,
        "http" | "https" => &[],
        _ => &AZURE,
    };
    let nearest = own.iter().chain(&CLIENT).min_by_key(|key| {
        let without = key.split_once('_').map_or(**key, |(_, rest)| rest);
        distance(name, key).min(distance(name, without))
    });
    let error = Error::new(Kind::InvalidArgument, "no such storage option for this store")
        .at(place)
        .found(format!("'{name}'"));
    error.expected(format!("a key like '{}'", nearest.unwrap_or(&"allow_http")))
}

/// Returns the number of characters to insert, delete or replace to turn one text into the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, wanted) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *wanted);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

/// Parses a duration: `30`, `30s`, `5m` or `500ms`.
fn seconds(text: &str) -> Option<Duration> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    if let Some(millis) = text.strip_suffix("ms") {
        return number(millis).map(Duration::from_millis);
    }
    if let Some(minutes) = text.strip_suffix('m') {
        return number(minutes).and_then(|minutes| minutes.checked_mul(60)).map(Duration::from_secs);
    }
    number(text.strip_suffix('s').unwrap_or(text)).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_keys_name_the_nearest() {
        let near = |name: &str, place: &str| unknown(name, place).to_string();
        assert!(near("aws_regoin", "s3://b/t").contains("'aws_region'"));
        assert!(near("aws_secret_acess_key", "s3://b/t").contains("'aws_secret_access_key'"));
        assert!(
            near("account_nam", "az://c/t").contains("'azure_storage_account_name'")
                || near("azure_storage_acount_name", "az://c/t").contains("'azure_storage_account_name'")
        );
        assert!(near("google_servic_account", "gs://b/t").contains("'google_service_account'"));
        assert!(near("max_retires", "gs://b/t").contains("'max_retries'"));
    }

    #[test]
    fn durations_and_locks() {
        assert_eq!(seconds("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(seconds("2m"), Some(Duration::from_secs(120)));
        assert_eq!(seconds("x"), None);
        let one = |name: &str, value: &str| {
            sorted(&BTreeMap::from([(name.to_owned(), value.to_owned())]), "s3://b/t")
        };
        assert_eq!(one("AWS_S3_LOCKING_PROVIDER", "dynamodb").unwrap_err().kind(), Kind::UnsupportedFeature);
        assert_eq!(one("conditional_put", "disabled").unwrap_err().kind(), Kind::UnsafeStore);
        assert!(one("AWS_S3_ALLOW_UNSAFE_RENAME", "true").unwrap().rest.is_empty());
        assert_eq!(one("max_retries", "3").unwrap().retry.max_retries, 3);
    }
}
