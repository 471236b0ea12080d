//! A filter tree as one quamina pattern: a conjunction over fields, each with a list of what is acceptable.

use serde_json::{Map, Value, json};

pub fn render(tree: &Value) -> Result<String, String> {
    let mut fields = Map::new();
    collect(tree, &mut fields)?;
    Ok(Value::Object(fields).to_string())
}

fn collect(tree: &Value, fields: &mut Map<String, Value>) -> Result<(), String> {
    let name = || tree[1].as_str().unwrap_or_default().to_string();
    match tree[0].as_str().unwrap_or_default() {
        "and" => tree.as_array().expect("a tree").iter().skip(1).try_for_each(|child| collect(child, fields)),
        "cmp" if tree[2] == "=" => add(fields, name(), json!([tree[3]])),
        "cmp" => add(fields, name(), json!([{"numeric": [tree[2], tree[3]]}])),
        "in" => add(fields, name(), tree[2].clone()),
        "between" => add(fields, name(), json!([{"numeric": [">=", tree[2], "<=", tree[3]]}])),
        "contains" => add(fields, name(), json!([{"wildcard": format!("*{}*", escaped(&tree[2]))}])),
        other => Err(format!("no operator for {other}")),
    }
}

fn escaped(text: &Value) -> String {
    text.as_str().unwrap_or_default().replace('\\', "\\\\").replace('*', "\\*")
}

fn add(fields: &mut Map<String, Value>, name: String, values: Value) -> Result<(), String> {
    match fields.insert(name, values) {
        Some(_) => Err("no two conditions on one field".to_string()),
        None => Ok(()),
    }
}
