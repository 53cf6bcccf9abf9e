//! The connection half of the store: the table it creates, the embedded transport below the real SDK, and what
//! a person reads when something is not there.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, ProjectionType};
use zae_limits::store::{Embedded, create_table};

const TABLE: &str = "rate-limits";

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

async fn put(client: &Client, pk: &str, extra: Option<(&str, AttributeValue)>) {
    let mut put = client
        .put_item()
        .table_name(TABLE)
        .item("PK", s(pk))
        .item("SK", s("#STATE"));
    if let Some((name, value)) = extra {
        put = put.item(name, value);
    }
    put.send().await.expect("put");
}

#[tokio::test]
async fn a_created_table_has_every_index_and_no_stream() {
    let client = Embedded::memory().expect("memory").client();
    assert!(create_table(&client, TABLE, false).await.expect("create"));

    let table = client
        .describe_table()
        .table_name(TABLE)
        .send()
        .await
        .expect("describe")
        .table
        .expect("table");
    let mut shape: Vec<String> = Vec::new();
    for index in table.global_secondary_indexes() {
        let keys: Vec<_> = index
            .key_schema()
            .iter()
            .map(|key| key.attribute_name())
            .collect();
        let projection = index
            .projection()
            .and_then(|p| p.projection_type())
            .map(ProjectionType::as_str);
        shape.push(format!(
            "{} {} {}",
            index.index_name().unwrap_or(""),
            keys.join(" "),
            projection.unwrap_or("")
        ));
    }
    for index in table.local_secondary_indexes() {
        let keys: Vec<_> = index
            .key_schema()
            .iter()
            .map(|key| key.attribute_name())
            .collect();
        let projection = index
            .projection()
            .and_then(|p| p.projection_type())
            .map(ProjectionType::as_str);
        shape.push(format!(
            "{} {} {}",
            index.index_name().unwrap_or(""),
            keys.join(" "),
            projection.unwrap_or("")
        ));
    }
    shape.sort();
    insta::assert_snapshot!(shape.join("\n"), @"");
    assert!(table.stream_specification().is_none());
    put(&client, "a", None).await;
}
