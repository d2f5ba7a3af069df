//! Converts errors of the crate object_store to errors of deltaic, because their text has URLs and internals
//! of the crate.

use std::error::Error as StdError;
use std::io;

use object_store::Error as BackendError;

use crate::error::{Error, Kind};

/// Codes of S3, Google Cloud Storage and Azure for a bucket or container that does not exist.
const NO_BUCKET: [&str; 3] = ["NoSuchBucket", "ContainerNotFound", "InvalidBucketName"];
/// Codes for unknown or expired credentials.
const BAD_CREDENTIALS: [&str; 9] = [
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "TokenRefreshRequired",
    "RequestTimeTooSkewed",
    "AuthenticationFailed",
    "InvalidSecurity",
    "InvalidAuthenticationInfo",
];
/// Codes for a missing permission. For a listing, object_store has no kind of error for them.
const DENIED: [&str; 5] = [
    "AccessDenied",
    "AuthorizationFailure",
    "AuthorizationPermissionMismatch",
    "InsufficientAccountPermissions",
    "AllAccessDisabled",
];
/// Codes for a bucket in another region.
const OTHER_REGION: [&str; 4] = [
    "PermanentRedirect",
    "AuthorizationHeaderMalformed",
    "IllegalLocationConstraintException",
    "TemporaryRedirect",
];

/// Returns the error of a request for the object `path` in the store at `location`.
pub fn backend_error(location: &str, path: &str, error: BackendError) -> Error {
    match error {
        BackendError::Generic { source, store } => match source.downcast::<Error>() {
            Ok(ours) => *ours, // an error of the function that returns credentials
            Err(source) => meaning(location, path, &BackendError::Generic { source, store }),
        },
        other => meaning(location, path, &other),
    }
}

fn meaning(location: &str, path: &str, error: &BackendError) -> Error {
    let place = if path.is_empty() { location.to_owned() } else { format!("{location}/{path}") };
    let text = chain(error);
    let code = between(&text, "<Code>", "</Code>").unwrap_or_default();
    let shown = if code.is_empty() { status(&text).unwrap_or_default() } else { code };
    let is = |codes: &[&str]| codes.contains(&code);
    if is(&NO_BUCKET) || text.contains("The specified bucket does not exist") {
        let missing =
            Error::new(Kind::NotFound, "the bucket or container of the table does not exist").at(place);
        return missing.found(shown).expected("one that exists: stores do not make them");
    }
    if is(&OTHER_REGION) || text.contains("incorrectly configured region") {
        let elsewhere = Error::new(Kind::Io, "the bucket is in another region").at(place);
        let region = between(&text, "<Region>", "</Region>")
            .map_or_else(|| shown.to_owned(), |region| format!("region {region}"));
        return elsewhere.found(region).expected("its region in storage_options (aws_region) or AWS_REGION");
    }
    if is(&BAD_CREDENTIALS) || matches!(error, BackendError::Unauthenticated { .. }) {
        return denied(place, &format!("the store does not accept the credentials: {shown}"));
    }
    if let Some(wanted) = lacks_credentials(&text) {
        return denied(place, &format!("no credentials were found: {wanted}"));
    }
    if is(&DENIED) || matches!(error, BackendError::PermissionDenied { .. }) || shown.starts_with("403") {
        return denied(place, &format!("the credentials do not allow it: {shown}"));
    }
    match error {
        BackendError::NotFound { .. } => Error::new(Kind::NotFound, "no such file").at(place),
        BackendError::NotSupported { .. } | BackendError::NotImplemented { .. } => {
            Error::new(Kind::UnsupportedFeature, "the store does not support this request").at(place)
        }
        _ => {
            let unreachable = shown.is_empty();
            let message = if unreachable {
                "the store could not be reached"
            } else {
                "the store answered with an error"
            };
            let cause = if unreachable { innermost(error) } else { shown.to_owned() };
            let failed = Error::new(Kind::Io, message).at(place).found(cause);
            if unreachable {
                failed.expected("an endpoint that answers: see endpoint and proxy in storage_options")
            } else {
                failed
            }
        }
    }
}

/// Returns the error that is a `PermissionError` in Python.
fn denied(place: String, message: &str) -> Error {
    const EACCES: i32 = if cfg!(windows) { 5 } else { 13 };
    Error::new(Kind::Io, message.trim_end_matches([':', ' ']))
        .at(place)
        .caused_by(io::Error::from_raw_os_error(EACCES))
}

/// Returns which options the user should set, if the client found no credentials of a cloud machine.
fn lacks_credentials(text: &str) -> Option<&'static str> {
    if text.contains("169.254.169.254/latest") || text.contains("169.254.170.2") {
        return Some(
            "set aws_access_key_id and aws_secret_access_key, aws_profile, or aws_skip_signature for a \
             public bucket",
        );
    }
    if text.contains("metadata/identity") {
        return Some(
            "set azure_storage_account_key, azure_storage_sas_token, or a client id, secret and tenant",
        );
    }
    let google = text.contains("metadata.google.internal") || text.contains("computeMetadata");
    google.then_some(
        "set google_service_account, google_application_credentials, or google_skip_signature for a public \
         bucket",
    )
}

/// Returns the texts of an error and all its causes.
fn chain(error: &BackendError) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(inner) = below {
        text.push('\n');
        text.push_str(&inner.to_string());
        below = inner.source();
    }
    text
}

/// Returns the text of the innermost cause, such as "Connection refused". A text with a URL, which may
/// contain a signature, is omitted.
fn innermost(error: &BackendError) -> String {
    let mut deepest: &dyn StdError = error;
    while let Some(inner) = deepest.source() {
        deepest = inner;
    }
    let text = deepest.to_string();
    if text.contains("://") { "no answer".to_owned() } else { text }
}

/// Returns the HTTP status in a text of object_store, such as "503 Service Unavailable".
fn status(text: &str) -> Option<&str> {
    let rest = text.split_once("status code: ")?.1;
    Some(rest.split([':', '\n']).next()?.trim())
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let rest = text.split_once(start)?.1;
    rest.split_once(end).map(|(inner, _)| inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> BackendError {
        BackendError::Generic { store: "S3", source: text.to_owned().into() }
    }

    #[test]
    fn failures_say_what_to_do() {
        let said = |text: &str| backend_error("s3://b/t", "x", generic(text)).to_string();
        assert!(
            said("status code: 404 Not Found: <Error><Code>NoSuchBucket</Code></Error>")
                .contains("does not exist")
        );
        assert!(
            said("<Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region>")
                .contains("found region eu-west-1")
        );
        assert!(said("PUT http://169.254.169.254/latest/api/token").contains("aws_access_key_id"));
        assert!(
            said("status code: 403 Forbidden: <Code>AccessDenied</Code>")
                .contains("do not allow it: AccessDenied")
        );
        assert!(
            said("Server returned non-2xx status code: 503 Slow Down: busy").contains("found 503 Slow Down")
        );
        let unreachable = said("GET https://b.host/?sig=SECRET timed out");
        assert!(
            !unreachable.contains("SECRET") && unreachable.contains("could not be reached"),
            "{unreachable}"
        );
    }
}
