//! Tables that cannot be reached: one clear line, exit 1, within ten seconds.

use super::{Said, Shell, said};
use std::io::{Read, Write};
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

/// The URL of a port at which nobody listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    format!("http://{}", listener.local_addr().expect("an address"))
}

/// A plan with nothing but these variables in its environment.
fn plan_with(shell: &Shell, line: &str, variables: &[(&str, &str)]) -> Said {
    let mut command = shell.command(line.split_whitespace().chain(["plan", "-f", "manifests"]));
    command.envs(variables.iter().copied());
    said(command)
}

const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")];

#[test]
fn what_the_environment_sets_to_nothing_is_not_given() {
    let shell = Shell::new();
    let url = nobody();
    let refused = format!("{url} refuses connections");
    let line = "-n t --region eu-central-1";
    let plan = |variables: &[(&str, &str)]| {
        let said = plan_with(&shell, line, &[&KEYS[..], variables].concat());
        assert_eq!(said.code, 1, "{variables:?}: {said:?}");
        assert_eq!(said.stderr.lines().count(), 1, "{variables:?}: {said:?}");
        said.stderr
    };
    let (all, own) = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB");
    assert!(plan(&[(all, ""), (own, &url)]).contains(&refused));
    assert!(plan(&[(own, ""), (all, &url)]).contains(&refused));

    // What the profile says is next, also where the region is set to nothing.
    let profile = format!("[default]\nregion = eu-central-1\nendpoint_url = {url}\n");
    shell.write(".aws/config", &profile);
    assert!(plan(&[(all, ""), (own, "")]).contains(&refused));
    let said = plan_with(
        &shell,
        "-n t --region= --profile=",
        &[&KEYS[..], &[(all, ""), ("AWS_REGION", "")]].concat(),
    );
    assert!(said.stderr.contains(&refused), "{said:?}");

    // The SDK's own client for credentials has no endpoint that is empty either.
    shell.write("token", "a token");
    let sts = super::local::sts();
    let web = [
        ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/r"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "token"),
        ("AWS_ENDPOINT_URL_STS", ""),
        (all, &sts),
    ];
    let said = plan_with(&shell, line, &web);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.stderr.contains("credentials could not be loaded"),
        "{said:?}"
    );
}

#[test]
fn what_is_no_url_says_so_and_never_a_password() {
    let shell = Shell::new();
    let line = "-n t --region eu-central-1";
    for (url, shown) in [
        ("ada:geheim@host", "***@host"),
        ("ftp://ada:geheim@host", "ftp://***@host"),
        ("http://", "http://"),
        (" ", " "),
    ] {
        let said = plan_with(
            &shell,
            line,
            &[&KEYS[..], &[("AWS_ENDPOINT_URL_DYNAMODB", url)]].concat(),
        );
        assert_eq!(said.code, 1, "{said:?}");
        assert_eq!(
            said.stderr,
            format!(
                "error: the endpoint URL {shown:?} is none: write one such as http://127.0.0.1:8000, or leave it out\n"
            )
        );
    }
    // Of a profile, nothing is what somebody wrote.
    for profile in [
        "[default]\nendpoint_url =\n",
        "[default]\nservices = s\n[services s]\ndynamodb =\n  endpoint_url =\n",
    ] {
        shell.write(".aws/config", profile);
        let said = plan_with(&shell, line, &KEYS);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(
            said.stderr.contains("the endpoint URL \"\" is none"),
            "{said:?}"
        );
    }
}

#[test]
fn a_password_in_the_endpoint_is_shown_nowhere() {
    let shell = Shell::seeded();
    let (_server, url) = super::local::serve(&shell);
    let secret = url.replace("http://", "http://ada:geheim@");
    let hidden = url.replace("http://", "http://***@");
    shell.edit("  claude-3:\n", "  claude-3:\n    disabled: true\n");
    let run = |line: &str, endpoint: &str| {
        let line = format!("-v -n rate-limits --region local --endpoint-url {endpoint} {line}");
        let mut command = shell.command(line.split(' '));
        command.envs(KEYS);
        let said = said(command);
        for stream in [&said.stdout, &said.stderr] {
            assert!(!stream.contains("geheim"), "{said:?}");
        }
        said
    };
    let plan = run("plan -f manifests --out review.plan", &secret);
    assert_eq!(plan.code, 0, "{plan:?}");
    assert!(plan.stdout.contains(&hidden), "{plan:?}");
    let saved = std::fs::read_to_string(shell.path("review.plan")).expect("the plan");
    assert!(
        saved.contains(&hidden) && !saved.contains("geheim"),
        "{saved}"
    );
    let markdown = run("plan -f manifests -o markdown", &secret);
    assert!(markdown.stdout.contains(&hidden), "{markdown:?}");
    let document = run("plan -f manifests -o json", &secret).json();
    assert_eq!(document["host"], hidden.as_str());
    let explained = run("explain user-123 gpt-4", &secret);
    assert!(explained.stdout.contains(&hidden), "{explained:?}");
    let missing = run("-N nobody explain user-123 gpt-4", &secret);
    assert!(missing.stderr.contains(&hidden), "{missing:?}");
    let applied = run("apply --plan review.plan --yes --settle 0", &secret);
    assert_eq!(applied.code, 0, "{applied:?}");
    assert!(
        applied.stderr.contains(&format!("Endpoint {hidden},")),
        "{applied:?}"
    );

    let nobody = nobody().replace("http://", "http://ada:geheim@");
    let refused = run("plan -f manifests", &nobody);
    assert!(
        refused.stderr.contains("refuses connections"),
        "{refused:?}"
    );
    let broken = run("plan -f manifests", "http://ada:geheim@[::1");
    assert_eq!(broken.code, 1, "{broken:?}");
    let elsewhere = run(
        "apply --plan review.plan --yes",
        "http://ada:geheim@localhost:1",
    );
    assert_ne!(elsewhere.code, 0, "{elsewhere:?}");
}

#[test]
fn credentials_that_are_nowhere_are_one_line_whatever_stands_in_for_them() {
    let shell = Shell::new();
    let none = "error: no AWS credentials were found: run where a role is attached, name a profile, \
                or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (--profile)\n";
    let line = "-n t --region eu-central-1";
    // The shell turns the metadata service off.
    assert_eq!(plan_with(&shell, line, &[]).stderr, none);
    shell.write(
        ".aws/config",
        "[profile role]\nrole_arn = arn:aws:iam::123456789012:role/r\n\
         credential_source = Ec2InstanceMetadata\n",
    );
    let said = plan_with(&shell, line, &[("AWS_PROFILE", "role")]);
    assert_eq!((said.code, said.stderr.as_str()), (1, none));

    // One that is there and says no.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let metadata = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a client");
            assert!(stream.read(&mut [0; 4096]).expect("a question") > 0);
            let answer = "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            stream.write_all(answer.as_bytes()).expect("answered");
        }
    });
    let said = plan_with(
        &shell,
        line,
        &[
            ("AWS_EC2_METADATA_DISABLED", "false"),
            ("AWS_EC2_METADATA_SERVICE_ENDPOINT", &metadata),
        ],
    );
    assert_eq!((said.code, said.stderr.as_str()), (1, none));
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
