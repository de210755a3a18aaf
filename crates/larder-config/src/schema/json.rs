//! The JSON Schema (draft 2020-12) of the config, for editors that complete and check TOML.
//!
//! In: the declarations. Out: text whose objects have their members in the order of the alphabet, whatever features
//! other crates switch on in serde_json. What only a check can tell (names, places, overlaps) is not in it.

use serde_json::{Map, Value, json};

use crate::schema::page::sentences;
use crate::schema::{Fallback, Key, SectionDoc, Shape};
use crate::sections::all_sections;

/// The JSON Schema of a config file, pretty-printed, with a line feed at its end.
pub fn json_schema() -> String {
    let mut definitions = Map::new();
    let mut root = Value::Null;
    for (index, section) in all_sections().iter().enumerate() {
        match index {
            0 => root = object(section),
            _ => drop(definitions.insert(section.name.to_owned(), object(section))),
        }
    }
    if let Value::Object(root) = &mut root {
        root.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        root.insert("title".to_owned(), json!("larder.toml"));
        root.insert("$defs".to_owned(), Value::Object(definitions));
    }
    format!("{:#}\n", sorted(root))
}

fn object(section: &SectionDoc) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    let mut add = |section: &SectionDoc| {
        for key in &section.keys {
            properties.insert(key.name.to_owned(), property(key));
            required.extend(matches!(key.fallback, Fallback::Required).then(|| key.name.to_owned()));
        }
    };
    add(section);
    section.flattened.iter().for_each(|flattened| add(&flattened()));
    let mut object = json!({
        "type": "object",
        "description": sentences(section.about),
        "properties": properties,
        "additionalProperties": false,
    });
    if let (Value::Object(object), false) = (&mut object, required.is_empty()) {
        object.insert("required".to_owned(), json!(required));
    }
    object
}

fn property(key: &Key) -> Value {
    let mut schema = shape(&key.shape, key.bounds);
    let Value::Object(members) = &mut schema else {
        return schema;
    };
    members.insert("description".to_owned(), json!(sentences(key.doc)));
    if let Fallback::Literal(text) = key.fallback {
        // The defaults are strings, numbers, truth and lists of them: TOML's spelling of those is JSON's.
        let default: Result<Value, _> = serde_json::from_str(text);
        members.extend(default.ok().map(|default| ("default".to_owned(), default)));
    }
    schema
}

fn shape(of: &Shape, bounds: Option<(&str, &str)>) -> Value {
    match of {
        Shape::Boolean => json!({ "type": "boolean" }),
        Shape::False => json!({ "const": false }),
        Shape::Integer => {
            let number = |text: &str| text.parse::<i64>().ok();
            let (low, high) = bounds.map_or((None, None), |(low, high)| (number(low), number(high)));
            let mut schema = json!({ "type": "integer", "minimum": low.unwrap_or(0) });
            if let (Value::Object(members), Some(high)) = (&mut schema, high) {
                members.insert("maximum".to_owned(), json!(high));
            }
            schema
        }
        Shape::Text(text) => match text.pattern {
            Some(pattern) => json!({ "type": "string", "pattern": pattern }),
            None => json!({ "type": "string" }),
        },
        Shape::Words(words) => json!({ "enum": words }),
        Shape::Numbers(numbers) => json!({ "enum": numbers }),
        Shape::List(item) => {
            let item = shape(item, bounds);
            match item.get("$ref") {
                Some(_) => json!({ "type": "array", "items": item }),
                None => json!({ "anyOf": [item, { "type": "array", "items": item }] }),
            }
        }
        Shape::Map(names, value) => json!({
            "type": "object",
            "propertyNames": names.pattern.map_or(json!({}), |pattern| json!({ "pattern": pattern })),
            "additionalProperties": shape(value, bounds),
        }),
        Shape::Section(section) => json!({ "$ref": format!("#/$defs/{}", section().name) }),
        Shape::AnyOf(shapes) => {
            json!({ "anyOf": shapes.iter().map(|one| shape(one, bounds)).collect::<Vec<_>>() })
        }
    }
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            members.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(members.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}
