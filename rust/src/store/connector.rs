//! The HTTP clients of object_store: one for each location, which reads the machine's certificates only if a
//! request needs them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};
use object_store::{ClientConfigKey, ClientOptions};
use reqwest::header::LOCATION;
use reqwest::redirect::Policy;

/// Settings of a proxy, which may need certificates.
const PROXIES: [&str; 4] = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];

/// An HTTP client that is shared by both clients of a location: a commit uses the same connection as its
/// data files, and the machine's certificates are read only once, which takes 4 ms.
#[derive(Debug, Default)]
pub struct SharedConnector {
    /// The clients by their options: requests for credentials have other options.
    made: Mutex<HashMap<String, HttpClient>>,
}

impl HttpConnector for SharedConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let key = format!("{options:?}");
        if let Some(client) = made.get(&key) {
            return Ok(client.clone());
        }
        let only_allows_http = ["true", "True"].iter().any(|yes| {
            let same = ClientOptions::new().with_config(ClientConfigKey::AllowHttp, *yes);
            key == format!("{same:?}")
        });
        let client = if only_allows_http && PROXIES.iter().all(|name| std::env::var_os(name).is_none()) {
            HttpClient::new(PlainFirst::new(options)?)
        } else {
            ReqwestConnector::default().connect(options)?
        };
        made.insert(key, client.clone());
        Ok(client)
    }
}

/// A client for options that allow `http://` and are the default otherwise. Requests to `http://` go through
/// a client without certificates. Requests to `https://`, and those that the server redirects, go through
/// the usual client, which is made for the first of them.
#[derive(Debug)]
struct PlainFirst {
    plain: reqwest::Client,
    usual: Mutex<Option<HttpClient>>,
    options: ClientOptions,
}

impl PlainFirst {
    fn new(options: &ClientOptions) -> object_store::Result<Self> {
        // The times are the defaults of ClientOptions.
        let plain = reqwest::Client::builder()
            .tls_built_in_root_certs(false)
            .redirect(Policy::none())
            .user_agent(concat!("deltaic/", env!("CARGO_PKG_VERSION")))
            .http1_only()
            .connect_timeout(Duration::from_secs(5))
            .timeout(Duration::from_secs(30))
            .build()
            .map_err(|error| object_store::Error::Generic { store: "HTTP", source: Box::new(error) })?;
        Ok(PlainFirst { plain, usual: Mutex::default(), options: options.clone() })
    }

    fn usual(&self) -> Result<HttpClient, HttpError> {
        let mut usual = self.usual.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = usual.as_ref() {
            return Ok(client.clone());
        }
        let made = ReqwestConnector::default()
            .connect(&self.options)
            .map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        Ok(usual.insert(made).clone())
    }
}

#[async_trait]
impl HttpService for PlainFirst {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if request.uri().scheme_str() == Some("http") {
            let response = self.plain.call(request.clone()).await?;
            if !(response.status().is_redirection() && response.headers().contains_key(LOCATION)) {
                return Ok(response);
            }
        }
        self.usual()?.execute(request).await
    }
}
