//! The embedded database below the real SDK, in memory, in a file and over HTTP.

use crate::fixture::{TABLE, client_of, get, key, memory, put, s};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    AttributeValue, BatchStatementRequest, ConditionCheck, KeysAndAttributes, Put,
    ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use std::collections::HashMap;
use std::net::TcpListener;
use std::time::Duration;
use tokio::sync::oneshot;
use zae_limits::store::error::{is_conditional_check_failed, is_transaction_cancelled};
use zae_limits::store::{Embedded, StoreError, create_table, serve};

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
    let UpdateItemError::ConditionalCheckFailedException(failed) = context.err() else {
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
