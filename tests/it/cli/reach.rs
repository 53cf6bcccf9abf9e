//! Tables that cannot be reached: one clear line, exit 1, within ten seconds.

use super::{Said, Shell, said};
use std::net::TcpListener;
use std::time::Duration;

/// Runs a plan against an endpoint with some credentials, and measures it.
fn plan(shell: &Shell, arguments: &str, credentials: bool) -> (Said, Duration) {
    let mut command = shell.command(format!("{arguments} plan -f manifests").split_whitespace());
    if credentials {
        command
            .env("AWS_ACCESS_KEY_ID", "a")
            .env("AWS_SECRET_ACCESS_KEY", "b");
    }
    let clock = zae_limits::clock::Clock::system();
    let began = clock.now();
    let said = said(command);
    (said, Duration::from_millis(clock.now().0 - began.0))
}

fn assert_one_line(said: &Said, took: Duration, expected: &str) {
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(said.stdout, "");
    assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
    assert!(said.stderr.contains(expected), "{expected}: {said:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn an_endpoint_that_refuses_connections() {
    let shell = Shell::new();
    let port = TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("an address")
        .port();
    let arguments = format!("-n t --region eu-central-1 --endpoint-url http://127.0.0.1:{port}");
    let (said, took) = plan(&shell, &arguments, true);
    assert_one_line(
        &said,
        took,
        &format!("http://127.0.0.1:{port} refuses connections"),
    );
}

#[test]
fn an_empty_endpoint_is_one_that_was_not_given() {
    let shell = Shell::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let arguments = "-n t --region eu-central-1 --endpoint-url= plan -f manifests";
    let mut command = shell.command(arguments.split_whitespace());
    command
        .env("AWS_ENDPOINT_URL_DYNAMODB", &url)
        .env("AWS_ACCESS_KEY_ID", "a")
        .env("AWS_SECRET_ACCESS_KEY", "b");
    let said = said(command);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.stderr.contains(&format!("{url} refuses connections")),
        "{said:?}"
    );
}

#[test]
fn an_endpoint_that_never_answers() {
    let shell = Shell::new();
    // It accepts, and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let arguments = format!("-n t --region eu-central-1 --endpoint-url http://127.0.0.1:{port}");
    let (said, took) = plan(&shell, &arguments, true);
    assert_one_line(&said, took, "did not answer in time");
}

#[test]
fn no_region_no_credentials_and_no_table() {
    let shell = Shell::new();
    let (said, took) = plan(&shell, "-n t", true);
    assert_one_line(&said, took, "no AWS region is set");
    assert!(
        said.stderr.ends_with(" (--region, --profile)\n"),
        "{said:?}"
    );
    let (said, took) = plan(&shell, "-n t --region eu-central-1", false);
    assert_one_line(&said, took, "credentials");
    assert!(said.stderr.ends_with(" (--profile)\n"), "{said:?}");
    let (said, _) = plan(&shell, "--region eu-central-1", true);
    assert_eq!(said.code, 64);
    assert!(said.stderr.contains("ZAEL_STACK"), "{said:?}");
}
