//! The table: every index, no stream where it is embedded, and no harm to a table that is there.

use crate::fixture::{TABLE, get, memory, put};
use aws_sdk_dynamodb::types::{AttributeDefinition, KeySchemaElement, Projection};
use zae_limits::store::{Embedded, create_table};

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
    let attribute = AttributeDefinition::builder()
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
