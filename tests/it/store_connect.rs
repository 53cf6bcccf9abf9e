//! The connection half of the store: the table it creates, the embedded transport below the real SDK, and what
//! a person reads when something is not there.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::types::{
    AttributeValue, BatchStatementRequest, ConditionCheck, KeySchemaElement, KeysAndAttributes,
    Projection, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use std::collections::HashMap;
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;
use zae_limits::store::error::{is_conditional_check_failed, is_transaction_cancelled};
use zae_limits::store::{Connection, Embedded, Patience, Place, StoreError, create_table, serve};

const TABLE: &str = "rate-limits";

async fn memory() -> Client {
    let client = Embedded::memory().expect("memory").client();
    assert!(create_table(&client, TABLE, false).await.expect("create"));
    client
}

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn key(pk: &str) -> HashMap<String, AttributeValue> {
    [("PK".to_owned(), s(pk)), ("SK".to_owned(), s("#STATE"))].into()
}

async fn put(client: &Client, pk: &str, n: u32) {
    let put = client.put_item().table_name(TABLE).set_item(Some(key(pk)));
    put.item("n", AttributeValue::N(n.to_string()))
        .send()
        .await
        .expect("put");
}

async fn get(client: &Client, pk: &str) -> Option<HashMap<String, AttributeValue>> {
    let get = client
        .get_item()
        .table_name(TABLE)
        .set_key(Some(key(pk)))
        .consistent_read(true);
    get.send().await.expect("get").item
}

// ---- the table

fn index(name: Option<&str>, keys: &[KeySchemaElement], projection: Option<&Projection>) -> String {
    let keys: Vec<_> = keys
        .iter()
        .map(|key| format!("{}:{}", key.key_type(), key.attribute_name()))
        .collect();
    let projection = projection
        .and_then(|p| p.projection_type())
        .map_or("none", |kind| kind.as_str());
    format!(
        "{} {} {projection}",
        name.unwrap_or("unnamed"),
        keys.join(" ")
    )
}

#[tokio::test]
async fn a_created_table_has_every_index_expires_items_and_has_no_stream() {
    let client = memory().await;
    let table = client
        .describe_table()
        .table_name(TABLE)
        .send()
        .await
        .expect("describe")
        .table
        .expect("a table");
    let mut shape = vec![index(Some("table"), table.key_schema(), None)];
    shape.extend(
        table
            .global_secondary_indexes()
            .iter()
            .map(|i| index(i.index_name(), i.key_schema(), i.projection())),
    );
    shape.extend(
        table
            .local_secondary_indexes()
            .iter()
            .map(|i| index(i.index_name(), i.key_schema(), i.projection())),
    );
    shape.sort();
    let types: Vec<_> = table
        .attribute_definitions()
        .iter()
        .map(|a| a.attribute_type().as_str())
        .collect();
    shape.push(format!(
        "{} key attributes, all {}",
        types.len(),
        if types.iter().all(|t| *t == "S") {
            "S"
        } else {
            "mixed"
        }
    ));
    shape.push(
        table
            .billing_mode_summary()
            .and_then(|b| b.billing_mode())
            .map_or("?", |b| b.as_str())
            .to_owned(),
    );
    insta::assert_snapshot!(shape.join("\n"), @r"
    GSI1 HASH:GSI1PK RANGE:GSI1SK ALL
    GSI2 HASH:GSI2PK RANGE:GSI2SK ALL
    GSI3 HASH:GSI3PK RANGE:GSI3SK KEYS_ONLY
    GSI4 HASH:GSI4PK RANGE:GSI4SK KEYS_ONLY
    LSI1 HASH:PK RANGE:LSI1SK ALL
    LSI2 HASH:PK RANGE:LSI2SK KEYS_ONLY
    LSI3 HASH:PK RANGE:LSI3SK ALL
    LSI4 HASH:PK RANGE:LSI4SK KEYS_ONLY
    LSI5 HASH:PK RANGE:LSI5SK ALL
    table HASH:PK RANGE:SK none
    15 key attributes, all S
    PAY_PER_REQUEST
    ");
    assert_eq!(table.stream_specification(), None);

    let ttl = client
        .describe_time_to_live()
        .table_name(TABLE)
        .send()
        .await
        .expect("ttl");
    let ttl = ttl.time_to_live_description.expect("a description");
    assert_eq!(
        (
            ttl.attribute_name(),
            ttl.time_to_live_status().map(|s| s.as_str())
        ),
        (Some("ttl"), Some("ENABLED"))
    );
}

#[tokio::test]
async fn a_table_for_aws_has_a_stream_of_both_images() {
    let client = Embedded::memory().expect("memory").client();
    create_table(&client, TABLE, true).await.expect("create");
    let table = client
        .describe_table()
        .table_name(TABLE)
        .send()
        .await
        .expect("describe")
        .table
        .expect("a table");
    let stream = table.stream_specification().expect("a stream");
    assert_eq!(
        (
            stream.stream_enabled(),
            stream.stream_view_type().map(|v| v.as_str())
        ),
        (true, Some("NEW_AND_OLD_IMAGES"))
    );
}

#[tokio::test]
async fn creating_twice_finds_the_first_table_with_its_items() {
    let client = memory().await;
    put(&client, "a", 1).await;
    assert!(!create_table(&client, TABLE, false).await.expect("again"));
    assert!(get(&client, "a").await.is_some());
}

#[tokio::test]
async fn two_at_once_both_find_a_table() {
    let client = Embedded::memory().expect("memory").client();
    let (first, second) = tokio::join!(
        create_table(&client, TABLE, false),
        create_table(&client, TABLE, false)
    );
    let created = [first.expect("first"), second.expect("second")];
    assert_eq!(created.iter().filter(|created| **created).count(), 1);
}

#[tokio::test]
async fn a_table_of_another_kind_is_not_taken_over() {
    let client = Embedded::memory().expect("memory").client();
    client
        .execute_statement()
        .statement("SELECT * FROM other")
        .send()
        .await
        .expect_err("there is no such table yet");
    let key = KeySchemaElement::builder()
        .attribute_name("id")
        .key_type("HASH".into())
        .build()
        .expect("key");
    let attribute = aws_sdk_dynamodb::types::AttributeDefinition::builder()
        .attribute_name("id")
        .attribute_type("S".into())
        .build()
        .expect("attribute");
    let create = client
        .create_table()
        .table_name("users")
        .billing_mode("PAY_PER_REQUEST".into());
    create
        .key_schema(key)
        .attribute_definitions(attribute)
        .send()
        .await
        .expect("create");
    let error = create_table(&client, "users", false)
        .await
        .expect_err("refused");
    insta::assert_snapshot!(error, @"table users is not a limits table, it lacks the keys PK and SK, GSI1, GSI2, GSI3, GSI4: name another table");
}

// ---- the embedded transport below the SDK

#[tokio::test]
async fn a_file_keeps_its_items_when_it_is_opened_again() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("local.db");
    {
        let client = Embedded::file(&path).expect("open").client();
        create_table(&client, TABLE, false).await.expect("create");
        put(&client, "a", 7).await;
    }
    let client = Embedded::file(&path).expect("open again").client();
    assert!(
        !create_table(&client, TABLE, false)
            .await
            .expect("there already")
    );
    assert_eq!(
        get(&client, "a").await.expect("kept")["n"],
        AttributeValue::N("7".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_openings_of_one_file_take_turns_and_lose_nothing() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("local.db");
    let first = Embedded::file(&path).expect("open").client();
    create_table(&first, TABLE, false).await.expect("create");
    let second = Embedded::file(&path).expect("open twice").client();

    let write = |client: Client, name: &'static str| {
        tokio::spawn(async move {
            for n in 0..100 {
                put(&client, &format!("{name}{n}"), n).await;
            }
        })
    };
    let (a, b) = (write(first.clone(), "a"), write(second, "b"));
    a.await.expect("first writer");
    b.await.expect("second writer");
    let count = first
        .scan()
        .table_name(TABLE)
        .send()
        .await
        .expect("scan")
        .count;
    assert_eq!(count, 200);
}

#[tokio::test]
async fn a_path_that_cannot_be_opened_says_which_and_what_to_do() {
    let error = Embedded::file("/nonexistent/folder/local.db".as_ref()).expect_err("no folder");
    insta::assert_snapshot!(error, @"could not open the embedded store /nonexistent/folder/local.db (unable to open database file: /nonexistent/folder/local.db): check that its folder exists and is writable, or choose another path");
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("notes.txt");
    std::fs::write(
        &path,
        "not a database, but long enough to be looked at as one: ".repeat(20),
    )
    .expect("write");
    let error = Embedded::file(&path)
        .expect_err("not a database")
        .to_string();
    insta::assert_snapshot!(error.replace(&folder.path().display().to_string(), "FOLDER"), @"could not open the embedded store FOLDER/notes.txt (it is a file of another kind): choose another path");
    let text = std::fs::read_to_string(&path).expect("read");
    assert!(text.starts_with("not a database"), "left as it was");
}

#[tokio::test]
async fn a_failed_condition_returns_the_item_that_was_there() {
    let client = memory().await;
    put(&client, "a", 7).await;
    let update = client
        .update_item()
        .table_name(TABLE)
        .set_key(Some(key("a")))
        .update_expression("SET n = :two");
    let error = update
        .condition_expression("n = :one")
        .expression_attribute_values(":one", AttributeValue::N("1".to_owned()))
        .expression_attribute_values(":two", AttributeValue::N("2".to_owned()))
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .send()
        .await
        .expect_err("the condition does not hold");
    assert!(is_conditional_check_failed(&error));
    let SdkError::ServiceError(context) = &error else {
        panic!("{error:?}")
    };
    let aws_sdk_dynamodb::operation::update_item::UpdateItemError::ConditionalCheckFailedException(
        failed,
    ) = context.err()
    else {
        panic!("{error:?}")
    };
    assert_eq!(
        failed.item().expect("ALL_OLD")["n"],
        AttributeValue::N("7".to_owned())
    );
    insta::assert_snapshot!(StoreError::from_sdk("stamp a bucket", error), @"could not stamp a bucket: the item changed meanwhile: run it again");
}

#[tokio::test]
async fn a_transaction_is_all_or_nothing_and_names_the_item_that_failed() {
    let client = memory().await;
    put(&client, "a", 1).await;
    let update = Update::builder()
        .table_name(TABLE)
        .set_key(Some(key("a")))
        .update_expression("SET n = n + :one")
        .expression_attribute_values(":one", AttributeValue::N("1".to_owned()))
        .build()
        .expect("update");
    let absent = Put::builder().table_name(TABLE).set_item(Some(key("b")));
    let absent = absent
        .condition_expression("attribute_not_exists(PK)")
        .build()
        .expect("put");
    let write = |check: Option<ConditionCheck>| {
        let items = client
            .transact_write_items()
            .transact_items(TransactWriteItem::builder().update(update.clone()).build())
            .transact_items(TransactWriteItem::builder().put(absent.clone()).build());
        match check {
            Some(check) => {
                items.transact_items(TransactWriteItem::builder().condition_check(check).build())
            }
            None => items,
        }
    };
    let exists = ConditionCheck::builder()
        .table_name(TABLE)
        .set_key(Some(key("c")));
    let exists = exists
        .condition_expression("attribute_exists(PK)")
        .build()
        .expect("check");

    let error = write(Some(exists))
        .send()
        .await
        .expect_err("c does not exist");
    assert!(is_transaction_cancelled(&error));
    insta::assert_snapshot!(StoreError::from_sdk("register the namespace", error), @"could not register the namespace: the transaction was cancelled (None, None, ConditionalCheckFailed): run it again");
    assert_eq!(
        get(&client, "a").await.expect("a")["n"],
        AttributeValue::N("1".to_owned())
    );

    write(None).send().await.expect("all hold");
    assert_eq!(
        get(&client, "a").await.expect("a")["n"],
        AttributeValue::N("2".to_owned())
    );
    assert!(get(&client, "b").await.is_some());
}

#[tokio::test]
async fn a_partiql_batch_answers_each_statement_on_its_own() {
    let client = memory().await;
    put(&client, "a", 1).await;
    put(&client, "b", 1).await;
    let update = |pk: &str| {
        BatchStatementRequest::builder()
            .statement(format!(
                "UPDATE \"{TABLE}\" SET disabled=? REMOVE bypass WHERE PK=? AND SK=?"
            ))
            .set_parameters(Some(vec![AttributeValue::Bool(true), s(pk), s("#STATE")]))
            .build()
            .expect("statement")
    };
    let batch = client
        .batch_execute_statement()
        .statements(update("a"))
        .statements(update("gone"))
        .statements(update("b"));
    let answers = batch
        .send()
        .await
        .expect("batch")
        .responses
        .expect("answers");
    let codes: Vec<_> = answers
        .iter()
        .map(|answer| {
            answer
                .error()
                .map(|e| e.code().map_or("none", |code| code.as_str()).to_owned())
        })
        .collect();
    assert_eq!(
        codes,
        [None, Some("ConditionalCheckFailed".to_owned()), None]
    );
    assert!(
        get(&client, "gone").await.is_none(),
        "an UPDATE creates nothing"
    );
    assert_eq!(
        get(&client, "b").await.expect("b")["disabled"],
        AttributeValue::Bool(true)
    );
}

#[tokio::test]
async fn a_batch_of_a_hundred_keys_returns_those_that_exist() {
    let client = memory().await;
    for n in 0..60 {
        put(&client, &format!("k{n}"), n).await;
    }
    let keys: Vec<_> = (0..100).map(|n| key(&format!("k{n}"))).collect();
    let keys = KeysAndAttributes::builder()
        .set_keys(Some(keys))
        .consistent_read(true)
        .build()
        .expect("keys");
    let answer = client
        .batch_get_item()
        .request_items(TABLE, keys)
        .send()
        .await
        .expect("batch");
    assert_eq!(answer.responses().expect("responses")[TABLE].len(), 60);
    assert!(answer.unprocessed_keys().is_none_or(HashMap::is_empty));
}

#[tokio::test(flavor = "current_thread")]
async fn other_tasks_of_a_single_thread_are_served_between_requests() {
    let client = memory().await;
    let (stop, mut stopped) = oneshot::channel();
    tokio::spawn(async move { stop.send(()) });
    let mut requests = 0;
    while stopped.try_recv().is_err() {
        put(&client, "a", requests).await;
        requests += 1;
        assert!(requests < 10, "the other task never ran");
    }
}

// ---- over HTTP

/// Static credentials for a client of the embedded store over HTTP, where any will do.
fn client_of(url: &str) -> Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(aws_sdk_dynamodb::config::BehaviorVersion::latest())
        .region(aws_sdk_dynamodb::config::Region::from_static("local"))
        .credentials_provider(aws_sdk_dynamodb::config::Credentials::new(
            "any", "any", None, None, "test",
        ))
        .endpoint_url(url);
    Client::from_conf(config.build())
}

#[tokio::test]
async fn the_served_store_is_the_one_in_this_process_until_it_is_told_to_stop() {
    let embedded = Embedded::memory().expect("memory");
    let here = embedded.client();
    create_table(&here, TABLE, false).await.expect("create");
    let (stop, stopping) = oneshot::channel::<()>();
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let server = serve(&embedded, listener, async { drop(stopping.await) }).expect("serve");
    let url = server.url();

    let there = client_of(&url);
    put(&there, "a", 3).await;
    assert_eq!(
        get(&here, "a").await.expect("the same database")["n"],
        AttributeValue::N("3".to_owned())
    );

    drop(there);
    stop.send(()).expect("it runs");
    tokio::time::timeout(Duration::from_secs(5), server.stopped())
        .await
        .expect("in time")
        .expect("well");
    let get = client_of(&url)
        .get_item()
        .table_name(TABLE)
        .set_key(Some(key("a")));
    get.send().await.expect_err("nobody listens any more");
}

#[tokio::test]
async fn the_store_is_served_on_loopback_only() {
    let embedded = Embedded::memory().expect("memory");
    let listener = TcpListener::bind("0.0.0.0:0").expect("bind");
    let port = listener.local_addr().expect("address").port().to_string();
    let error = serve(&embedded, listener, std::future::pending())
        .expect_err("refused")
        .to_string();
    insta::assert_snapshot!(error.replace(&port, "PORT"), @"the embedded store checks no signatures, so it is served on loopback only, not on 0.0.0.0:PORT: use 127.0.0.1");
}

// ---- what is not there

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

#[tokio::test]
async fn something_that_is_not_dynamodb_is_one_line() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("bind");
    let url = format!("http://{}", listener.local_addr().expect("address"));
    tokio::spawn(async move {
        let page = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = vec![0; 4096];
                drop(tokio::io::AsyncReadExt::read(&mut stream, &mut request).await);
                drop(tokio::io::AsyncWriteExt::write_all(&mut stream, page.as_bytes()).await);
            });
        }
    });
    insta::assert_snapshot!(first_read(&client_of(&url)).await, @r#"could not read the version record: the request or its answer is not DynamoDB's (Error at offset 0: unexpected token 'h'. Expected one of '{', '[', '"', 'null', 'true', 'false', <number>): check the endpoint URL"#);
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
        insta::assert_snapshot!(error, @"no AWS credentials were found: set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where a role is attached");
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
        insta::assert_snapshot!(error, @"no AWS region is set: pass --region, or set AWS_REGION, or give the profile a region");
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
