//! A table in memory, and the few requests the store's tests make of one.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::HashMap;
use zae_limits::store::{Embedded, create_table};

/// The name of every test's table.
pub const TABLE: &str = "rate-limits";

/// Limits of a level, in a flow mapping, that make its item larger than the 400 KB a table takes.
pub fn more_limits_than_an_item_holds() -> String {
    let name = "n".repeat(55);
    let limits = (0..3500).map(|index| format!("{name}{index}: {{ capacity: 1000000000000000 }}"));
    format!("{{ {} }}", limits.collect::<Vec<_>>().join(", "))
}

pub async fn memory() -> Client {
    let client = Embedded::memory().expect("memory").client();
    assert!(create_table(&client, TABLE, false).await.expect("create"));
    client
}

pub fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

pub fn key(pk: &str) -> HashMap<String, AttributeValue> {
    [("PK".to_owned(), s(pk)), ("SK".to_owned(), s("#STATE"))].into()
}

pub async fn put(client: &Client, pk: &str, n: u32) {
    let put = client.put_item().table_name(TABLE).set_item(Some(key(pk)));
    put.item("n", AttributeValue::N(n.to_string()))
        .send()
        .await
        .expect("put");
}

pub async fn get(client: &Client, pk: &str) -> Option<HashMap<String, AttributeValue>> {
    let get = client
        .get_item()
        .table_name(TABLE)
        .set_key(Some(key(pk)))
        .consistent_read(true);
    get.send().await.expect("get").item
}

/// Static credentials for a client of the embedded store over HTTP, where any will do.
pub fn client_of(url: &str) -> Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("local"))
        .credentials_provider(Credentials::new("any", "any", None, None, "test"))
        .endpoint_url(url);
    Client::from_conf(config.build())
}
