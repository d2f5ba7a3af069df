//! Tables in S3, Google Cloud Storage and Azure, through the clients of object_store, configured from the
//! environment and the caller's options.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::{ClientConfigKey, ObjectStoreScheme, RetryConfig};
use url::Url;

use super::cache::CachedStore;
use super::connector::SharedConnector;
use super::credentials::CredentialCache;
use super::http::HttpTable;
use super::keys::{Keys, plain, sorted, unknown};
use super::object::{Clients, ObjectStoreAdapter};
use super::{OpenOptions, Store, path};
use crate::error::{Error, Kind, Result};

/// The schemes of URLs that this module opens.
pub const SCHEMES: [&str; 10] = ["s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss", "https", "http"];

/// The clients of this process, by location and options. All tables of a bucket share their connections.
static CLIENTS: Mutex<Option<HashMap<String, Clients>>> = Mutex::new(None);

/// Maximum number of clients that are kept; above it, all are dropped.
const MOST_CLIENTS: usize = 64;

/// Opens the folder of a URL.
pub fn open(location: &str, options: &OpenOptions) -> Result<Arc<dyn Store>> {
    let place = path::without_query(location).trim_end_matches('/');
    let malformed = |found: &str| {
        Error::new(Kind::InvalidArgument, "not a URL of a table").at(without_password(place)).found(found)
    };
    if place.len() != location.trim_end_matches('/').len() {
        return Err(
            malformed("a query or fragment").expected("a bucket and a folder, with keys in storage_options=")
        );
    }
    let url = Url::parse(location).map_err(|error| malformed("text that is no URL").caused_by(error))?;
    if !url.username().is_empty() && !url.scheme().starts_with("abfs") || url.password().is_some() {
        return Err(malformed("credentials in the URL")
            .expected("credentials in storage_options= or the environment"));
    }
    let (scheme, prefix) = ObjectStoreScheme::parse(&url)
        .map_err(|error| malformed("an address of no known store").caused_by(error))?;
    let is_plain = scheme == ObjectStoreScheme::Http;
    let clients = known_clients(&url, scheme, place, options)?;
    let store = ObjectStoreAdapter::new(place.to_owned(), prefix.as_ref(), clients, options)?;
    let store: Arc<dyn Store> = if is_plain { Arc::new(HttpTable::new(store)) } else { Arc::new(store) };
    Ok(match &options.cache {
        Some(cache) => Arc::new(CachedStore::new(store, cache, options, !is_plain)),
        None => store,
    })
}

/// Returns the URL for an error message: the part before the last `@` is removed if it contains a password,
/// which follows a `:`. The text is searched instead of the parsed URL, as text with `/` in the password is
/// no valid URL.
fn without_password(place: &str) -> String {
    let Some((scheme, rest)) = place.split_once("://") else { return place.to_owned() };
    match rest.rsplit_once('@') {
        Some((user, address)) if user.contains(':') => format!("{scheme}://...@{address}"),
        _ => place.to_owned(),
    }
}

fn known_clients(
    url: &Url,
    scheme: ObjectStoreScheme,
    place: &str,
    options: &OpenOptions,
) -> Result<Clients> {
    let environment: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| {
            ["AWS_", "AZURE_", "GOOGLE_", "MSI_", "IDENTITY_"].iter().any(|prefix| name.starts_with(prefix))
        })
        .collect();
    // The child of a fork must not use its parent's connections.
    let authority = (url.scheme(), url.username(), url.host_str(), url.port());
    let in_path = if url.scheme().starts_with("http") { url.path() } else { "" };
    let source = options.credentials.as_ref().map(|source| source.identity());
    let key = format!(
        "{} {authority:?} {in_path} {:?} {source:?} {environment:?}",
        std::process::id(),
        options.storage
    );
    let mut kept = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = kept.get_or_insert_with(HashMap::new);
    if let Some(clients) = kept.get(&key) {
        return Ok(clients.clone());
    }
    let clients = new_clients(url, scheme, place, options)?;
    if kept.len() >= MOST_CLIENTS {
        kept.clear();
    }
    kept.insert(key, clients.clone());
    Ok(clients)
}

/// Builds the two clients of a location with one builder. `$key` parses the names of options.
macro_rules! clients {
    ($builder:expr, $key:ty, $url:expr, $place:expr, $options:expr, $unproven:expr) => {{
        let mut builder = $builder.with_url($url.as_str());
        let Keys { retry, rest } = sorted(&$options.storage, $place)?;
        for (name, value) in rest {
            let key: $key = name.parse().map_err(|_| unknown(&name, $place))?;
            builder = builder.with_config(key, value);
        }
        if let Some(source) = &$options.credentials {
            builder =
                builder.with_credentials(Arc::new(CredentialCache::new(Arc::clone(source), bucket_of($url))));
        }
        let failed = |error| cannot_open($place, &$options.storage, &error);
        let builder = builder.with_http_connector(SharedConnector::default());
        let backend = Arc::new(builder.clone().with_retry(retry).build().map_err(failed)?);
        let once = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let commits = Arc::new(builder.with_retry(once).build().map_err(failed)?);
        Ok(Clients { backend: backend.clone(), commits, pages: Some(backend), unproven: $unproven })
    }};
}

fn new_clients(url: &Url, scheme: ObjectStoreScheme, place: &str, options: &OpenOptions) -> Result<Clients> {
    match scheme {
        ObjectStoreScheme::AmazonS3 => {
            let builder = s3_from_environment(options);
            // Amazon's own S3 supports put-if-absent. Some compatible servers ignore the header and replace
            // the object.
            let endpoint =
                |name: &str| options.storage.keys().any(|key| plain(key).trim_start_matches("aws_") == name);
            let elsewhere = ["endpoint", "endpoint_url", "endpoint_url_s3"].into_iter().any(endpoint)
                || ["AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"]
                    .iter()
                    .any(|name| std::env::var_os(name).is_some());
            let unproven = elsewhere.then(|| format!("{:?} {:?}", url.host_str(), options.storage));
            clients!(builder, AmazonS3ConfigKey, url, place, options, unproven)
        }
        ObjectStoreScheme::GoogleCloudStorage => {
            clients!(GoogleCloudStorageBuilder::from_env(), GoogleConfigKey, url, place, options, None)
        }
        ObjectStoreScheme::MicrosoftAzure => {
            clients!(MicrosoftAzureBuilder::from_env(), AzureConfigKey, url, place, options, None)
        }
        _ => http_clients(url, place, options),
    }
}

/// Returns the clients for plain HTTP, which only read files.
fn http_clients(url: &Url, place: &str, options: &OpenOptions) -> Result<Clients> {
    let Keys { retry, rest } = sorted(&options.storage, place)?;
    let mut builder = HttpBuilder::new().with_url(&url[..url::Position::BeforePath]).with_retry(retry);
    for (name, value) in rest {
        let key: ClientConfigKey = name.parse().map_err(|_| unknown(&name, place))?;
        builder = builder.with_config(key, value);
    }
    let client = Arc::new(builder.build().map_err(|error| cannot_open(place, &options.storage, &error))?);
    Ok(Clients { backend: client.clone(), commits: client, pages: None, unproven: None })
}

/// Returns a builder with the settings of the environment. If the options have a key, no credentials of the
/// environment are used, as a token belongs to its key.
fn s3_from_environment(options: &OpenOptions) -> AmazonS3Builder {
    let has_key = options
        .storage
        .keys()
        .any(|name| matches!(plain(name).as_str(), "aws_access_key_id" | "access_key_id"));
    let credentials = ["aws_access_key_id", "aws_secret_access_key", "aws_session_token"];
    let mut builder = AmazonS3Builder::new();
    for (name, value) in std::env::vars_os() {
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
        let name = name.to_ascii_lowercase();
        if !name.starts_with("aws_") || (has_key && credentials.contains(&name.as_str())) {
            continue;
        }
        if let Ok(key) = name.parse() {
            builder = builder.with_config(key, value);
        }
    }
    builder
}

/// Returns the URL of the bucket or container in a URL.
fn bucket_of(url: &Url) -> String {
    let user = if url.username().is_empty() { String::new() } else { format!("{}@", url.username()) };
    format!("{}://{user}{}", url.scheme(), url.host_str().unwrap_or_default())
}

/// Returns the error of a builder, with its message if that contains no value of an option.
fn cannot_open(place: &str, options: &BTreeMap<String, String>, error: &object_store::Error) -> Error {
    let refused =
        Error::new(Kind::InvalidArgument, "the store cannot be opened with these storage options").at(place);
    let text = error.to_string();
    let has_value = options.values().any(|value| value.len() > 5 && text.contains(value.as_str()));
    if has_value || text.contains("://") {
        refused.found(format!("options {:?}", options.keys()))
    } else {
        refused.found(text)
    }
}
