//! `local serve` and `local reset`, and what a table behind an endpoint is like.

use super::{Running, Said, Shell, exists, said};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use zae_limits::store::Embedded;

/// An STS that answers one question, on a port of its own.
pub(super) fn sts() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut request = [0; 8192];
        let read = stream.read(&mut request).expect("a question");
        assert!(read > 0);
        let body = "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\
                    <GetCallerIdentityResult><Arn>arn:aws:iam::123456789012:user/ada</Arn>\
                    <UserId>U</UserId><Account>123456789012</Account></GetCallerIdentityResult>\
                    <ResponseMetadata><RequestId>1</RequestId></ResponseMetadata>\
                    </GetCallerIdentityResponse>";
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/xml\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(answer.as_bytes()).expect("answered");
    });
    url
}

/// An AWS configuration whose services are elsewhere.
fn configure(shell: &Shell, dynamodb: &str, sts: &str) {
    shell.write(
        ".aws/config",
        &format!(
            "[default]\nregion = eu-central-1\nservices = elsewhere\n\n[services elsewhere]\n\
             dynamodb =\n  endpoint_url = {dynamodb}\nsts =\n  endpoint_url = {sts}\n"
        ),
    );
    shell.write(
        ".aws/credentials",
        "[default]\naws_access_key_id = a\naws_secret_access_key = b\n",
    );
}

/// The principals of the audit events of a level.
async fn principals(shell: &Shell, subject: &str) -> Vec<String> {
    let client = Embedded::file(&shell.path(".zae-limits/local.db"))
        .expect("the store")
        .client();
    let scan = client.scan().table_name("rate-limits").send().await;
    let items = scan.expect("scanned").items.unwrap_or_default();
    let mut events: Vec<_> = items
        .iter()
        .filter(|item| {
            item.get("entity_id")
                .is_some_and(|id| id.as_s().is_ok_and(|id| id == subject))
        })
        .filter(|item| item.contains_key("event_id"))
        .collect();
    events.sort_by_key(|item| item["SK"].as_s().expect("a key").clone());
    let principal =
        |item: &&std::collections::HashMap<String, aws_sdk_dynamodb::types::AttributeValue>| {
            item["principal"]
                .as_s()
                .map_or_else(|_| "nobody".to_owned(), Clone::clone)
        };
    events.iter().map(principal).collect()
}

#[tokio::test]
async fn before_anything_is_written_to_aws_the_account_and_the_caller_are_shown() {
    let shell = Shell::seeded();
    let (server, url) = serve(&shell);
    shell.edit("  claude-3:\n", "  claude-3:\n    disabled: true\n");

    // Whoever cannot be named does not write.
    configure(&shell, &url, "http://127.0.0.1:1");
    let unnamed = shell.run("-n rate-limits apply -f manifests --yes --settle 0");
    assert_eq!(unnamed.code, 1, "{unnamed:?}");
    assert!(
        unnamed.stderr.contains("could not ask STS who is calling"),
        "{unnamed:?}"
    );
    let plan = shell.run("-n rate-limits plan -f manifests --detailed-exitcode");
    assert_eq!(
        plan.code, 2,
        "a plan reads only, and nothing was written: {plan:?}"
    );

    configure(&shell, &url, &sts());
    let applied = shell.ok("-n rate-limits -q apply -f manifests --yes --settle 0");
    insta::assert_snapshot!(applied.stderr, @"Account 123456789012, region eu-central-1, table rate-limits, as arn:aws:iam::123456789012:user/ada.");
    drop(server);
    let principals = principals(&shell, "$RESOURCE:claude-3").await;
    assert_eq!(principals, ["nobody", "arn:aws:iam::123456789012:user/ada"]);
}

#[test]
fn the_environment_that_serve_prints_is_enough_for_this_command_line() {
    let shell = Shell::seeded();
    let (_server, url) = serve(&shell);
    shell.edit("  claude-3:\n", "  claude-3:\n    disabled: true\n");
    let mut command = shell.command("apply -f manifests --yes --settle 0".split(' '));
    command
        .env("AWS_ENDPOINT_URL_DYNAMODB", &url)
        .env("AWS_REGION", "local")
        .env("AWS_ACCESS_KEY_ID", "local")
        .env("AWS_SECRET_ACCESS_KEY", "local")
        .env("ZAEL_STACK", "rate-limits");
    let applied = said(command);
    assert_eq!(applied.code, 0, "{applied:?}");
    assert!(
        applied.stderr.starts_with(&format!("Endpoint {url},")),
        "{applied:?}"
    );
}

/// A server, and the URL that it says it has.
pub(super) fn serve(shell: &Shell) -> (Running, String) {
    let mut command = shell.command(["--local", "-q", "local", "serve", "--port", "0"]);
    command.stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let stdout = child.stdout.take().expect("its stdout");
    let running = Running(child);
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    let (_, url) = line.trim().rsplit_once(" at ").expect("a URL");
    (running, url.to_owned())
}

/// A command of another client, for which the store is a table behind an endpoint.
fn remote(shell: &Shell, url: &str, table: &str, line: &str) -> Said {
    let arguments = format!("-n {table} --region local --endpoint-url {url} {line}");
    let mut command = shell.command(arguments.split(' '));
    command
        .env("AWS_ACCESS_KEY_ID", "a")
        .env("AWS_SECRET_ACCESS_KEY", "b");
    said(command)
}

#[test]
fn another_client_reads_and_writes_what_is_served_until_ctrl_c() {
    let shell = Shell::seeded();
    let (mut server, url) = serve(&shell);
    let at = |table: &str, line: &str| remote(&shell, &url, table, line);
    let remote = |line: &str| at("rate-limits", line);
    let plan = remote("plan -f manifests --detailed-exitcode");
    assert_eq!(plan.code, 0, "{plan:?}");
    assert!(
        plan.stdout.contains(&format!("(table rate-limits, {url})")),
        "{plan:?}"
    );

    shell.edit("  claude-3:\n", "  claude-3:\n    disabled: true\n");
    let applied = remote("apply -f manifests --yes --settle 0");
    assert_eq!(applied.code, 0, "{applied:?}");
    assert!(
        applied
            .stdout
            .contains("resource claude-3: stopped 2 buckets"),
        "{applied:?}"
    );
    let shown = format!("Endpoint {url}, region local, table rate-limits.");
    assert!(applied.stderr.starts_with(&shown), "{applied:?}");

    let missing = at("other", "plan -f manifests");
    assert_eq!(missing.code, 1);
    let expected = format!("table other does not exist ({url})");
    assert!(missing.stderr.contains(&expected), "{missing:?}");
    assert_eq!(missing.stderr.lines().count(), 1);

    let unknown = remote("-N nobody explain user-123 gpt-4");
    assert_eq!(unknown.code, 1);
    assert!(
        unknown
            .stderr
            .contains("namespace \"nobody\" is not registered"),
        "{unknown:?}"
    );

    let pid = Pid::from_child(&server.0);
    kill_process(pid, Signal::INT).expect("signalled");
    assert_eq!(server.0.wait().expect("it ends").code(), Some(0));
    shell.ok("--local plan -f manifests --detailed-exitcode");
}

#[test]
fn a_store_that_is_served_first_is_one_to_apply_to() {
    let shell = Shell::new();
    let (_server, url) = serve(&shell);
    let at = |line: &str| remote(&shell, &url, "rate-limits", line);
    let plan = at("plan -f manifests");
    assert!(plan.stdout.contains("7 to create"), "{plan:?}");
    let applied = at("apply -f manifests --yes --settle 0");
    assert_eq!(applied.code, 0, "{applied:?}");
    shell.ok("--local plan -f manifests --detailed-exitcode");
}

#[test]
fn reset_deletes_a_store_and_nothing_else() {
    let shell = Shell::seeded();
    assert_eq!(shell.run("--local local reset").code, 64);
    assert!(exists(&shell.path(".zae-limits/local.db")));
    shell.ok("--local local reset --yes");
    assert!(!exists(&shell.path(".zae-limits/local.db")));
    shell.ok("--local local reset --yes");
    let said = shell.run("--local=manifests/tenant-alpha.limits.yaml local reset --yes");
    assert_eq!(said.code, 1);
    assert!(said.stderr.contains("is not an embedded store"), "{said:?}");
    shell.ok("validate");
}

#[test]
fn a_port_in_use_is_one_clear_line() {
    let shell = Shell::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let said = shell.run(&format!("--local local serve --port {port}"));
    assert_eq!(said.code, 1);
    assert!(
        said.stderr
            .contains(&format!("could not listen on port {port}")),
        "{said:?}"
    );
}
