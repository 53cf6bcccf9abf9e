//! Connecting, and what a person reads when something is not there: one line each, in time.

use crate::fixture::{TABLE, client_of, get, key, put};
use aws_sdk_dynamodb::Client;
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;
use tokio::time::Instant;
use zae_limits::store::{Connection, Embedded, Patience, Place, StoreError, create_table, serve};

fn rate_limits_at(host: &str) -> Place {
    Place {
        table: TABLE.to_owned(),
        host: host.to_owned(),
    }
}

async fn first_read(client: &Client) -> StoreError {
    let get = client
        .get_item()
        .table_name(TABLE)
        .set_key(Some(key("a")))
        .customize();
    let get = get.config_override(Patience::first_contact().overriding());
    StoreError::from_sdk(
        "read the version record",
        get.send().await.expect_err("it cannot work"),
    )
}

#[tokio::test]
async fn an_endpoint_that_refuses_connections_is_one_line_within_ten_seconds() {
    let port = TcpListener::bind("127.0.0.1:0")
        .expect("bind")
        .local_addr()
        .expect("address")
        .port();
    let url = format!("http://127.0.0.1:{port}");
    let started = Instant::now();
    let error = first_read(&client_of(&url)).await;
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
    let error = error.at(&rate_limits_at(&url)).to_string();
    insta::assert_snapshot!(error.replace(&port.to_string(), "PORT"), @"could not read the version record: http://127.0.0.1:PORT refuses connections: start what should listen there, or correct the endpoint URL");
}

#[tokio::test]
async fn an_endpoint_that_never_answers_is_one_line_within_ten_seconds() {
    // The system accepts connections for a listener that is bound, so these are open and stay silent.
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let url = format!("http://{}", listener.local_addr().expect("address"));
    let started = Instant::now();
    let error = first_read(&client_of(&url)).await;
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
    insta::assert_snapshot!(error, @"could not read the version record: the endpoint did not answer in time: check the network and the endpoint, then run it again");
}

#[tokio::test]
async fn a_host_that_does_not_exist_is_one_line() {
    let error = first_read(&client_of("http://no-such-host.invalid:8000")).await;
    let StoreError::Unreachable { reason, .. } = &error else {
        panic!("{error:?}")
    };
    let reason = reason.clone();
    insta::assert_snapshot!(error.to_string().replace(&reason, "REASON"), @"could not read the version record: the endpoint cannot be reached (REASON): check the network, the region and the endpoint URL");
}

/// An endpoint that answers every request with the same head and body.
async fn answering(head: &'static str, body: &'static str) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("bind");
    let url = format!("http://{}", listener.local_addr().expect("address"));
    let length = body.len();
    let page =
        format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let page = page.clone();
            tokio::spawn(async move {
                let mut request = vec![0; 4096];
                drop(tokio::io::AsyncReadExt::read(&mut stream, &mut request).await);
                drop(tokio::io::AsyncWriteExt::write_all(&mut stream, page.as_bytes()).await);
            });
        }
    });
    url
}

#[tokio::test]
async fn a_server_error_of_dynamodb_is_told_from_an_endpoint_that_is_something_else() {
    const HTML: &str = "<html><body>It works!</body></html>";
    let amz = "content-type: application/x-amz-json-1.0";
    let html = "content-type: text/html; charset=utf-8";
    let internal =
        r#"{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"no"}"#;
    let (run, check) = (
        "wait and run it again",
        "check the endpoint URL and any proxy on the way",
    );
    let is_not = |status: u16, content: &str, remedy: &str| {
        format!(
            "URL answered HTTP {status} with {content}, which is no answer of DynamoDB: {remedy}"
        )
    };
    let either = format!("{run}, or {check}");
    let failed = |what: &str| format!("DynamoDB failed (HTTP {what}) after every retry: {run}");
    let text_html = "text/html; charset=utf-8";
    for (status, header, body, expected, is_transient) in [
        (
            "500 Error",
            amz,
            internal,
            failed("500, InternalServerError"),
            true,
        ),
        ("503 Error", amz, "", failed("503"), true),
        (
            "500 Error",
            "x-amzn-RequestId: 1",
            HTML,
            failed("500"),
            true,
        ),
        (
            "500 Error",
            html,
            HTML,
            is_not(500, text_html, &either),
            true,
        ),
        (
            "502 Bad Gateway",
            html,
            HTML,
            is_not(502, text_html, &either),
            true,
        ),
        ("200 OK", html, HTML, is_not(200, text_html, check), false),
        (
            "404 Not Found",
            html,
            HTML,
            is_not(404, text_html, check),
            false,
        ),
        ("407 Proxy", html, "", is_not(407, text_html, check), false),
        (
            "200 OK",
            "server: x",
            "hello",
            is_not(200, "no content type", check),
            false,
        ),
        (
            "403 Forbidden",
            "content-type: a\tb",
            "",
            is_not(403, "ab", check),
            false,
        ),
    ] {
        let url = answering(format!("{status}\r\n{header}").leak(), body).await;
        let error = first_read(&client_of(&url)).await.at(&rate_limits_at(&url));
        let said = error.to_string().replace(&url, "URL");
        assert_eq!(
            said,
            format!("could not read the version record: {expected}"),
            "{status} {header}"
        );
        assert_eq!(error.is_transient(), is_transient, "{status} {header}");
    }
}

#[tokio::test]
async fn a_missing_table_is_named_with_its_place() {
    let embedded = Embedded::memory().expect("memory");
    let error = first_read(&embedded.client()).await;
    insta::assert_snapshot!(error, @"could not read the version record: the table or its index does not exist: check the table's name, the region and the account");
    insta::assert_snapshot!(error.at(&rate_limits_at(&embedded.host())), @"could not read the version record: table rate-limits does not exist (memory): check the table's name, the region and the account");
}

/// Set in the process that runs one test alone.
const ALONE: &str = "ZAE_LIMITS_TEST_ALONE";

/// Whether this is the process that does the work. The SDK's chain reads the environment of the process, which
/// the tests share, so a test of the chain runs itself again with only these variables set, and passes if that
/// run does.
fn alone(test: &str, variables: &[(&str, &str)]) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let home = tempfile::tempdir().expect("folder");
    let child = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", &format!("store_connect::{test}"), "--nocapture"])
        .env_clear()
        .env(ALONE, "1")
        .env("HOME", home.path())
        .envs(variables.iter().copied())
        .output()
        .expect("run");
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&child.stderr)
    );
    false
}

#[tokio::test]
async fn missing_credentials_are_one_line_within_ten_seconds() {
    // Where no role is attached, nobody answers at the metadata service's address.
    let silent = TcpListener::bind("127.0.0.1:0").expect("bind");
    let metadata = format!("http://{}", silent.local_addr().expect("address"));
    let variables = [
        ("AWS_REGION", "eu-central-1"),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", &metadata),
    ];
    if alone(
        "missing_credentials_are_one_line_within_ten_seconds",
        &variables,
    ) {
        let started = Instant::now();
        let error = Connection::default()
            .open()
            .await
            .expect_err("no credentials");
        assert!(
            started.elapsed() < Duration::from_secs(10),
            "{:?}",
            started.elapsed()
        );
        insta::assert_snapshot!(error, @"no AWS credentials were found: run where a role is attached, name a profile, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
    }
}

#[tokio::test]
async fn a_missing_region_is_one_line() {
    let variables = [
        ("AWS_ACCESS_KEY_ID", "any"),
        ("AWS_SECRET_ACCESS_KEY", "any"),
    ];
    if alone("a_missing_region_is_one_line", &variables) {
        let error = Connection::default().open().await.expect_err("no region");
        insta::assert_snapshot!(error, @"no AWS region is set: name one, set AWS_REGION, or give the profile a region");
    }
}

/// The SDK would panic over it, and cannot be told that it was not given.
#[tokio::test]
async fn an_endpoint_that_the_environment_sets_to_nothing_is_one_line() {
    let variables = [
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ENDPOINT_URL", ""),
        ("AWS_ACCESS_KEY_ID", "any"),
        ("AWS_SECRET_ACCESS_KEY", "any"),
    ];
    if alone(
        "an_endpoint_that_the_environment_sets_to_nothing_is_one_line",
        &variables,
    ) {
        let error = Connection::default().open().await.expect_err("no endpoint");
        insta::assert_snapshot!(error, @r#"the endpoint URL "" is none: write one such as http://127.0.0.1:8000, or leave it out"#);
    }
}

#[tokio::test]
async fn a_profile_that_does_not_exist_is_one_line() {
    let variables = [
        ("AWS_REGION", "eu-central-1"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ];
    if alone("a_profile_that_does_not_exist_is_one_line", &variables) {
        let connection = Connection {
            profile: Some("staging".to_owned()),
            ..Connection::default()
        };
        let error = connection.open().await.expect_err("no such profile");
        insta::assert_snapshot!(error, @"the AWS credentials could not be loaded (profile staging does not exist or has none): log in again, or correct the profile");
    }
}

#[tokio::test]
async fn what_the_caller_chose_wins_over_the_environment() {
    let variables = [
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9"),
        ("AWS_ACCESS_KEY_ID", "any"),
        ("AWS_SECRET_ACCESS_KEY", "any"),
    ];
    if alone(
        "what_the_caller_chose_wins_over_the_environment",
        &variables,
    ) {
        let open = Connection::default()
            .open()
            .await
            .expect("the environment's");
        assert_eq!(
            (open.region.as_str(), open.host.as_str()),
            ("eu-central-1", "http://127.0.0.1:9")
        );

        let embedded = Embedded::memory().expect("memory");
        create_table(&embedded.client(), TABLE, false)
            .await
            .expect("create");
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let server = serve(&embedded, listener, std::future::pending()).expect("serve");
        let connection = Connection {
            region: Some("us-east-1".to_owned()),
            endpoint_url: Some(server.url()),
            ..Connection::default()
        };
        let open = connection.open().await.expect("the caller's");
        assert_eq!(
            (open.region.as_str(), open.host),
            ("us-east-1", server.url())
        );
        put(&open.client, "a", 1).await;
        assert!(get(&embedded.client(), "a").await.is_some());
    }
}

#[test]
fn an_error_of_the_store_names_no_flag_of_the_command_line() {
    // The function says the same, and has none.
    for error in [StoreError::RegionMissing, StoreError::CredentialsMissing] {
        assert!(!error.to_string().contains("--"), "{error}");
    }
}
