//! Credentials that a function of the caller returns; it is called again before they expire, for jobs that
//! run longer than a token is valid.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use object_store::azure::{AzureAccessKey, AzureCredential};
use object_store::gcp::GcpCredential;
use percent_encoding::percent_decode_str;

use super::keys::plain;
use crate::error::{Error, Kind, Result};

/// Credentials are requested again when they expire within this time.
const RENEWED_BEFORE: Duration = Duration::from_secs(300);

/// Credentials as storage options, and the time of their expiry (`None`: never).
pub type Credentials = (BTreeMap<String, String>, Option<SystemTime>);

/// A source of credentials for a bucket or container.
pub trait CredentialSource: fmt::Debug + Send + Sync {
    /// Returns the credentials for `location`, such as `s3://bucket`.
    fn credentials(&self, location: &str) -> Result<Credentials>;
    /// Returns a number that is equal for equal sources.
    fn identity(&self) -> usize;
}

/// Converts credentials in storage options to those of one store.
pub trait FromOptions: Sized + Send + Sync + 'static {
    /// Returns the credentials, or `None` if keys are missing, and the expected keys for an error message.
    fn from_options(options: &BTreeMap<String, String>) -> (Option<Self>, &'static str);
}

impl FromOptions for AwsCredential {
    fn from_options(options: &BTreeMap<String, String>) -> (Option<Self>, &'static str) {
        let get = |name: &str| any(options, &[name, name.trim_start_matches("aws_")]);
        let (key, secret) = (get("aws_access_key_id"), get("aws_secret_access_key"));
        let found = key.zip(secret).map(|(key_id, secret_key)| Self {
            key_id,
            secret_key,
            token: get("aws_session_token"),
        });
        (found, "aws_access_key_id, aws_secret_access_key and, if there is one, aws_session_token")
    }
}

impl FromOptions for AzureCredential {
    fn from_options(options: &BTreeMap<String, String>) -> (Option<Self>, &'static str) {
        let token = any(options, &["azure_storage_token", "bearer_token", "token"]).map(Self::BearerToken);
        let signature =
            any(options, &["azure_storage_sas_token", "azure_storage_sas_key", "sas_token", "sas_key"]);
        let signature = signature.map(|text| Self::SASToken(pairs(text.trim_start_matches('?'))));
        let key = any(
            options,
            &["azure_storage_account_key", "azure_storage_access_key", "account_key", "access_key"],
        );
        let key = key.and_then(|key| AzureAccessKey::try_new(&key).ok()).map(Self::AccessKey);
        (
            token.or(signature).or(key),
            "azure_storage_token, azure_storage_sas_token or azure_storage_account_key",
        )
    }
}

impl FromOptions for GcpCredential {
    fn from_options(options: &BTreeMap<String, String>) -> (Option<Self>, &'static str) {
        (
            any(options, &["google_token", "bearer_token", "token"]).map(|bearer| Self { bearer }),
            "google_token",
        )
    }
}

fn any(options: &BTreeMap<String, String>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| options.get(*name)).cloned()
}

fn pairs(text: &str) -> Vec<(String, String)> {
    let decoded = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
    text.split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

/// The credentials of a source, kept until shortly before they expire.
pub struct CredentialCache<C> {
    source: Arc<dyn CredentialSource>,
    location: String,
    last: Mutex<Option<(Arc<C>, Option<SystemTime>)>>,
}

impl<C> CredentialCache<C> {
    /// Makes the cache of the credentials for a location.
    pub fn new(source: Arc<dyn CredentialSource>, location: String) -> Self {
        Self { source, location, last: Mutex::new(None) }
    }
}

impl<C> fmt::Debug for CredentialCache<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CredentialCache").field("location", &self.location).finish_non_exhaustive()
    }
}

impl<C: FromOptions> CredentialCache<C> {
    fn valid(&self) -> Result<Arc<C>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_valid =
            |until: &Option<SystemTime>| until.is_none_or(|until| SystemTime::now() + RENEWED_BEFORE < until);
        if let Some((credential, until)) = last.as_ref()
            && is_valid(until)
        {
            return Ok(Arc::clone(credential));
        }
        let (options, until) = self.source.credentials(&self.location)?;
        let options = options.into_iter().map(|(name, value)| (plain(&name), value)).collect();
        let (credential, expected) = C::from_options(&options);
        let credential = Arc::new(credential.ok_or_else(|| {
            let names = options.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let error = Error::new(Kind::InvalidArgument, "credentials= gave no credentials for this store")
                .at(self.location.as_str());
            error.found(format!("keys: {names}")).expected(expected)
        })?);
        *last = Some((Arc::clone(&credential), until));
        Ok(credential)
    }
}

impl<C: FromOptions> CredentialProvider for CredentialCache<C> {
    type Credential = C;

    fn get_credential<'a, 'b>(&'a self) -> BoxFuture<'b, object_store::Result<Arc<C>>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async {
            self.valid().map_err(|error| object_store::Error::Generic {
                store: "credentials",
                source: Box::new(error),
            })
        })
    }
}
