//! The table itself: its keys, its indexes, and creating it where it is missing.
//!
//! The shape is given by the Python library's table (zae-limiter 0.17.0) and must not be improved on. A local
//! index in particular can only be made together with its table. Compared with the template that library
//! deploys, this leaves out point-in-time recovery and deletion protection, which a deployed table gets from
//! its template; compared with the table its client creates, this one expires items by `ttl`, as the template's
//! does. What goes into the table is not decided here.

use super::error::{StoreError, is_table_in_use, is_table_missing};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::operation::create_table::builders::CreateTableInputBuilder;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType,
    LocalSecondaryIndex, Projection, ProjectionType, ScalarAttributeType, StreamSpecification,
    StreamViewType, TableDescription, TableStatus, TimeToLiveSpecification, TimeToLiveStatus,
};
use std::time::Duration;

/// The global indexes and what each projects. Their keys are `{name}PK` and `{name}SK`.
const GLOBAL: [(&str, ProjectionType); 4] = [
    ("GSI1", ProjectionType::All),
    ("GSI2", ProjectionType::All),
    ("GSI3", ProjectionType::KeysOnly),
    ("GSI4", ProjectionType::KeysOnly),
];

/// The local indexes and what each projects. Their sort key is `{name}SK`.
const LOCAL: [(&str, ProjectionType); 5] = [
    ("LSI1", ProjectionType::All),
    ("LSI2", ProjectionType::KeysOnly),
    ("LSI3", ProjectionType::All),
    ("LSI4", ProjectionType::KeysOnly),
    ("LSI5", ProjectionType::All),
];

/// The attribute whose passing, in epoch seconds, expires an item.
const TTL: &str = "ttl";

/// How often, and how far apart, a table being created is looked at: some five minutes.
const LOOKS: u32 = 150;
const PAUSE: Duration = Duration::from_secs(2);

/// Creates the table and waits until it is ACTIVE, or finds it there. True when this call created it.
///
/// `stream` gives it a stream of new and old images. The embedded database is slower with every write that a
/// stream records, so only a real table gets one. An existing table is left as it is, its stream included;
/// only a missing expiry by `ttl` is switched on.
///
/// # Errors
/// [`StoreError::TableForeign`] when a table of that name exists but lacks an index this crate reads,
/// [`StoreError::TableNotActive`] after some five minutes, else the failure of a request.
pub async fn create_table(client: &Client, table: &str, stream: bool) -> Result<bool, StoreError> {
    let created = match describe(client, table).await? {
        Some(_) => false,
        None => create(client, table, stream).await?,
    };
    let description = active(client, table).await?;
    check_shape(table, &description)?;
    expire(client, table).await?;
    Ok(created)
}

async fn create(client: &Client, table: &str, stream: bool) -> Result<bool, StoreError> {
    let act = || format!("create the table {table}");
    let input = definition(table, stream).map_err(|error| StoreError::Malformed {
        act: act().into(),
        reason: error.to_string(),
    })?;
    match input.send_with(client).await {
        Ok(_) => Ok(true),
        // Someone else was faster: theirs will do.
        Err(error) if is_table_in_use(&error) => Ok(false),
        Err(error) => Err(StoreError::from_sdk(act(), error)),
    }
}

async fn describe(client: &Client, table: &str) -> Result<Option<TableDescription>, StoreError> {
    match client.describe_table().table_name(table).send().await {
        Ok(answer) => Ok(answer.table),
        Err(error) if is_table_missing(&error) => Ok(None),
        Err(error) => Err(StoreError::from_sdk(
            format!("look at the table {table}"),
            error,
        )),
    }
}

async fn active(client: &Client, table: &str) -> Result<TableDescription, StoreError> {
    let mut status = "missing".to_owned();
    for _ in 0..LOOKS {
        if let Some(description) = describe(client, table).await? {
            match description.table_status() {
                Some(TableStatus::Active) => return Ok(description),
                other => {
                    status = other.map_or("in no known state".to_owned(), |s| s.as_str().to_owned())
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(StoreError::TableNotActive {
        table: table.to_owned(),
        status,
    })
}

/// Whether a table has the keys and the global indexes of a limits table. The local ones are reserved and read
/// by nobody, and tables older than them exist.
fn check_shape(table: &str, description: &TableDescription) -> Result<(), StoreError> {
    let mut lacking = Vec::new();
    if !has_keys(description.key_schema(), "PK", "SK") {
        lacking.push("the keys PK and SK");
    }
    for (name, _) in GLOBAL {
        let found = description
            .global_secondary_indexes()
            .iter()
            .find(|index| index.index_name() == Some(name));
        if !found
            .is_some_and(|i| has_keys(i.key_schema(), &format!("{name}PK"), &format!("{name}SK")))
        {
            lacking.push(name);
        }
    }
    if lacking.is_empty() {
        return Ok(());
    }
    Err(StoreError::TableForeign {
        table: table.to_owned(),
        lacking: lacking.join(", "),
    })
}

fn has_keys(schema: &[KeySchemaElement], hash: &str, range: &str) -> bool {
    let names = |kind: KeyType| {
        schema
            .iter()
            .find(move |k| *k.key_type() == kind)
            .map(|k| k.attribute_name())
    };
    schema.len() == 2 && names(KeyType::Hash) == Some(hash) && names(KeyType::Range) == Some(range)
}

async fn expire(client: &Client, table: &str) -> Result<(), StoreError> {
    let act = || format!("look at the expiry of the table {table}");
    let answer = client
        .describe_time_to_live()
        .table_name(table)
        .send()
        .await
        .map_err(|error| StoreError::from_sdk(act(), error))?;
    let status = answer
        .time_to_live_description()
        .and_then(|ttl| ttl.time_to_live_status());
    if matches!(
        status,
        Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)
    ) {
        return Ok(());
    }
    let act = || format!("switch on the expiry of the table {table}");
    let specification = TimeToLiveSpecification::builder()
        .enabled(true)
        .attribute_name(TTL)
        .build()
        .map_err(|error| StoreError::Malformed {
            act: act().into(),
            reason: error.to_string(),
        })?;
    client
        .update_time_to_live()
        .table_name(table)
        .time_to_live_specification(specification)
        .send()
        .await
        .map_err(|error| StoreError::from_sdk(act(), error))?;
    Ok(())
}

/// The request that creates the table.
fn definition(table: &str, stream: bool) -> Result<CreateTableInputBuilder, BuildError> {
    let mut input = CreateTableInputBuilder::default()
        .table_name(table)
        .billing_mode(BillingMode::PayPerRequest)
        .set_key_schema(Some(keys("PK", "SK")?))
        .attribute_definitions(text("PK")?)
        .attribute_definitions(text("SK")?);
    for (name, projects) in GLOBAL {
        let (hash, range) = (format!("{name}PK"), format!("{name}SK"));
        let index = GlobalSecondaryIndex::builder()
            .index_name(name)
            .set_key_schema(Some(keys(&hash, &range)?))
            .projection(Projection::builder().projection_type(projects).build())
            .build()?;
        input = input
            .attribute_definitions(text(&hash)?)
            .attribute_definitions(text(&range)?)
            .global_secondary_indexes(index);
    }
    for (name, projects) in LOCAL {
        let range = format!("{name}SK");
        let index = LocalSecondaryIndex::builder()
            .index_name(name)
            .set_key_schema(Some(keys("PK", &range)?))
            .projection(Projection::builder().projection_type(projects).build())
            .build()?;
        input = input
            .attribute_definitions(text(&range)?)
            .local_secondary_indexes(index);
    }
    if stream {
        let images = StreamViewType::NewAndOldImages;
        let specification = StreamSpecification::builder()
            .stream_enabled(true)
            .stream_view_type(images)
            .build()?;
        input = input.stream_specification(specification);
    }
    Ok(input)
}

fn keys(hash: &str, range: &str) -> Result<Vec<KeySchemaElement>, BuildError> {
    let key = |name: &str, kind| {
        KeySchemaElement::builder()
            .attribute_name(name)
            .key_type(kind)
            .build()
    };
    Ok(vec![key(hash, KeyType::Hash)?, key(range, KeyType::Range)?])
}

/// Every key attribute is a string.
fn text(name: &str) -> Result<AttributeDefinition, BuildError> {
    AttributeDefinition::builder()
        .attribute_name(name)
        .attribute_type(ScalarAttributeType::S)
        .build()
}
