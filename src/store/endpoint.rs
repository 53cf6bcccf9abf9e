//! The endpoint URL of a connection: which one the SDK is going to use, whether it is one, and how
//! it is shown. A URL may hold a password, so none is shown but through here.

use super::StoreError;
use aws_config::SdkConfig;
use aws_types::service_config::ServiceConfigKey;

/// What stands where a user and a password stood.
const HIDDEN: &str = "***";

/// The endpoint that the SDK's client of a service takes: the caller's, else the service's own of
/// environment and profile, else theirs for all services. `None`: the region's.
///
/// # Errors
/// [`StoreError::EndpointInvalid`] for what is no URL. Over an empty one the SDK would panic.
pub(super) fn of(sdk: &SdkConfig, service: &str) -> Result<Option<String>, StoreError> {
    let everyones = || sdk.endpoint_url().map(str::to_owned);
    let url = if sdk.get_origin("endpoint_url").is_client_config() {
        everyones()
    } else {
        let key = ServiceConfigKey::builder()
            .service_id(service)
            .env("AWS_ENDPOINT_URL")
            .profile("endpoint_url")
            .build();
        let services = key.ok().zip(sdk.service_config());
        let services = services.and_then(|(key, config)| config.load_config(key));
        services.or_else(everyones)
    };
    match url {
        Some(url) if !is_url(&url) => Err(StoreError::EndpointInvalid {
            url: without_user(&url),
        }),
        url => Ok(url),
    }
}

fn is_url(text: &str) -> bool {
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    rest.is_some_and(|rest| !rest.starts_with(['/', '?', '#']) && !rest.is_empty())
        && !text.contains(char::is_whitespace)
}

/// A URL without user and password.
pub(super) fn without_user(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = url.split_at(start);
    // The last one: a password that was not encoded may hold more of them, and slashes.
    match rest.rfind('@') {
        Some(at) => format!("{scheme}{HIDDEN}{}", &rest[at..]),
        None => url.to_owned(),
    }
}

/// A text in which every URL is without user and password.
pub(super) fn without_users(text: &str) -> String {
    let ends = |c: char| c.is_whitespace() || "\"'`<>".contains(c);
    let words = text.split_inclusive(ends);
    words
        .map(|word| match word.contains("://") {
            true => without_user(word),
            false => word.to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_user_and_no_password_is_shown() {
        for (url, shown) in [
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
            ("http://ada:secret@host:8000/x", "http://***@host:8000/x"),
            ("https://ada@host", "https://***@host"),
            ("http://ada:s@cr/et@host", "http://***@host"),
            ("ada:secret@host", "***@host"),
        ] {
            assert_eq!(without_user(url), shown);
        }
        assert_eq!(
            without_users("failed at `http://a:b@h/` and \"https://c:d@i\", not a@b"),
            "failed at `http://***@h/` and \"https://***@i\", not a@b"
        );
    }

    #[test]
    fn a_url_has_a_scheme_and_a_host() {
        for url in ["http://h", "https://u:p@h:1/x?y"] {
            assert!(is_url(url), "{url}");
        }
        for text in [
            "",
            " ",
            "h",
            "u:p@h",
            "ftp://h",
            "http://",
            "http:///x",
            "http://a b",
        ] {
            assert!(!is_url(text), "{text}");
        }
    }
}
