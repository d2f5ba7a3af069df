//! Functions that change a variant at a path: they open the objects and arrays on the path, and write all
//! others as they are.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use parquet_variant::Variant;

use super::arguments::Arguments;
use super::failure;
use super::json::DEPTH;
use super::variant::{Step, path_of};
use super::variant_bytes::{Column, Encoder, Variants};
use super::variant_limits::Limits;
use crate::error::{Error, Result};

/// Largest index at which an array is filled up with nulls. Each null takes 200 bytes while the array is
/// changed.
const MOST_ITEMS: usize = 1 << 18;

/// A variant whose objects and arrays are taken apart only where they are changed.
enum Node<'a> {
    Whole(Variant<'a, 'a>),
    List(Vec<Node<'a>>),
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

const NULL: Node = Node::Whole(Variant::Null);

impl<'a> Node<'a> {
    /// Takes an object or array apart into its fields or items; any other node stays as it is.
    fn opened(self) -> Self {
        match self {
            Self::Whole(Variant::List(items)) => Self::List(items.iter().map(Node::Whole).collect()),
            Self::Whole(Variant::Object(fields)) => Self::Object(
                fields.iter().map(|(name, value)| (Cow::Borrowed(name), Node::Whole(value))).collect(),
            ),
            other => other,
        }
    }

    /// Takes all objects and arrays in a node apart, and leaves out nulls of objects and, with `items`, of
    /// arrays.
    fn without_nulls(self, items: bool, limits: &mut Limits) -> Result<Self> {
        let is_null = |node: &Node| matches!(node, Node::Whole(Variant::Null));
        Ok(match self.opened() {
            Self::List(nodes) => {
                limits.enter(nodes.len())?;
                let kept = nodes
                    .into_iter()
                    .filter(|node| !(items && is_null(node)))
                    .map(|node| node.without_nulls(items, limits))
                    .collect::<Result<_>>()?;
                limits.leave();
                Self::List(kept)
            }
            Self::Object(fields) => {
                limits.enter(fields.len())?;
                let kept = fields
                    .into_iter()
                    .filter(|(_, node)| !is_null(node))
                    .map(|(name, node)| Ok((name, node.without_nulls(items, limits)?)))
                    .collect::<Result<_>>()?;
                limits.leave();
                Self::Object(kept)
            }
            other => other,
        })
    }

    fn write(&self, encoder: &mut Encoder, out: &mut Vec<u8>) -> Result<Option<()>> {
        match self {
            Self::Whole(value) => encoder.variant(value, out).map(Some),
            Self::List(nodes) => {
                encoder.list(nodes.len(), out, |encoder, place, out| nodes[place].write(encoder, out))
            }
            Self::Object(fields) => {
                let names = fields.iter().map(|(name, _)| name.as_ref());
                encoder.object(names, out, |encoder, place, out| fields[place].1.write(encoder, out))
            }
        }
    }
}

/// The reason why a value cannot be put at a path.
enum Refusal {
    /// The value after this number of steps is no object or array in which the next step could be taken.
    Mismatch(usize),
    Known(String),
    TooLong,
}

/// The change at the end of a path.
#[derive(Clone, Copy, PartialEq)]
enum Change {
    /// Adds a field, or an item before the one at the index.
    Insert,
    /// Replaces the value at the path. `create`: adds it if there is none.
    Set { create: bool },
    /// Adds an item at the end of the array at the path.
    Append,
}

type Changed<'a> = std::result::Result<Node<'a>, Refusal>;

/// Puts `value` at `path[at..]` of `node`.
fn put<'a>(node: Node<'a>, path: &[Step], at: usize, value: Node<'a>, change: Change) -> Changed<'a> {
    let Some(step) = path.get(at) else {
        let Node::List(mut items) = node.opened() else { return Err(Refusal::Mismatch(at)) };
        items.push(value);
        return Ok(Node::List(items));
    };
    let is_last = at + 1 == path.len() && change != Change::Append;
    let creates = matches!(change, Change::Insert | Change::Set { create: true });
    match (step, node.opened()) {
        (Step::Named(name), Node::Object(mut fields)) => {
            match fields.iter_mut().find(|field| field.0 == *name) {
                Some(_) if is_last && change == Change::Insert => return Err(Refusal::Known(name.clone())),
                Some(field) if is_last => field.1 = value,
                Some(field) => {
                    field.1 = put(std::mem::replace(&mut field.1, NULL), path, at + 1, value, change)?
                }
                None if creates => fields.push((Cow::Owned(name.clone()), made(path, at + 1, value)?)),
                None => {}
            }
            Ok(Node::Object(fields))
        }
        (Step::Index(index), Node::List(mut items)) => {
            match items.get_mut(*index) {
                Some(_) if is_last && change == Change::Insert => items.insert(*index, value),
                Some(item) if is_last => *item = value,
                Some(item) => *item = put(std::mem::replace(item, NULL), path, at + 1, value, change)?,
                None if creates => fill(&mut items, *index, made(path, at + 1, value)?)?,
                None => {}
            }
            Ok(Node::List(items))
        }
        _ => Err(Refusal::Mismatch(at)),
    }
}

/// Returns `value` within new objects and arrays for the steps `path[at..]`: `{"a": [1]}` for `.a[0]` and 1.
fn made<'a>(path: &[Step], at: usize, value: Node<'a>) -> Changed<'a> {
    let mut node = value;
    for step in path[at..].iter().rev() {
        node = match step {
            Step::Named(name) => Node::Object(vec![(Cow::Owned(name.clone()), node)]),
            Step::Index(index) => {
                let mut items = Vec::new();
                fill(&mut items, *index, node)?;
                Node::List(items)
            }
        };
    }
    Ok(node)
}

/// Puts `value` at `index`, after the last item, with nulls between: 5 at index 3 of `[1]` gives
/// `[1, null, null, 5]`.
fn fill<'a>(items: &mut Vec<Node<'a>>, index: usize, value: Node<'a>) -> std::result::Result<(), Refusal> {
    if index > MOST_ITEMS {
        return Err(Refusal::TooLong);
    }
    items.resize_with(index, || NULL);
    items.push(value);
    Ok(())
}

/// Removes the part at `path[at..]` of `node`, if there is such a part.
fn removed<'a>(node: Node<'a>, path: &[Step], at: usize) -> Node<'a> {
    let is_last = at + 1 == path.len();
    match (&path[at], node.opened()) {
        (Step::Named(name), Node::Object(mut fields)) => {
            if let Some(place) = fields.iter().position(|field| field.0 == *name) {
                if is_last {
                    fields.remove(place);
                } else {
                    fields[place].1 = removed(std::mem::replace(&mut fields[place].1, NULL), path, at + 1);
                }
            }
            Node::Object(fields)
        }
        (Step::Index(index), Node::List(mut items)) => {
            if is_last && *index < items.len() {
                items.remove(*index);
            } else if let Some(item) = items.get_mut(*index) {
                *item = removed(std::mem::replace(item, NULL), path, at + 1);
            }
            Node::List(items)
        }
        (_, other) => other,
    }
}

fn invalid_path(path: &str, function: &str) -> Error {
    failure("INVALID_VARIANT_PATH", format!("The path '{path}' is not a valid `{function}` target."))
}

fn shown(steps: &[Step]) -> String {
    let step = |step: &Step| match step {
        Step::Named(name) => format!(".{name}"),
        Step::Index(index) => format!("[{index}]"),
    };
    format!("${}", steps.iter().map(step).collect::<String>())
}

/// Parses the paths of the rows, and keeps the last one for the rows with the same path.
struct Paths<'a> {
    function: &'a str,
    known: String,
    steps: Vec<Step>,
}

impl<'a> Paths<'a> {
    fn new(function: &'a str) -> Self {
        Self { function, known: String::new(), steps: Vec::new() }
    }

    /// Returns the steps of a path. The path of the whole is an error unless the function appends.
    fn of(&mut self, path: &str) -> Result<&[Step]> {
        if self.known != path || path.is_empty() {
            let appends = self.function.ends_with("append");
            let steps = path_of(path).filter(|steps| appends || !steps.is_empty());
            self.steps = steps.ok_or_else(|| invalid_path(path, self.function))?;
            if self.steps.len() > DEPTH {
                return Err(failure("VARIANT_SIZE_LIMIT", format!("a path of more than {DEPTH} steps")));
            }
            path.clone_into(&mut self.known);
        }
        Ok(&self.steps)
    }
}

/// Evaluates `variant_change(variant, path, value, function, create)`. `function`: the function's name in
/// SQL, such as `try_variant_set`; `create`: 0 if `variant_set` puts values only where there are some.
pub fn change(given: &Arguments) -> Result<ArrayRef> {
    let (values, paths) = (Variants::new(given.array(0)?)?, given.text(1)?);
    let (new, function, create) = (Variants::new(given.array(2)?)?, given.text(3)?, given.integers(4)?);
    let mut out = Column::new(given.rows());
    let name = if given.rows() == 0 { "variant_set" } else { function.value(0) };
    let (mut known, is_safe) = (Paths::new(name), name.starts_with("try_"));
    for (row, (value, new)) in values.iter().zip(new.iter()).enumerate() {
        let (Some(value), Some(new), true) = (value?, new?, paths.is_valid(row)) else {
            out.append_null()?;
            continue;
        };
        let path = paths.value(row);
        let steps = known.of(path)?;
        let change = match name.trim_start_matches("try_") {
            "variant_insert" => Change::Insert,
            "variant_set" => Change::Set { create: create.value(row) != 0 },
            _ => Change::Append,
        };
        match put(Node::Whole(value), steps, 0, Node::Whole(new), change) {
            Ok(node) => {
                out.append(|encoder, bytes| node.write(encoder, bytes))?;
            }
            Err(Refusal::TooLong) => {
                return Err(failure("VARIANT_SIZE_LIMIT", format!("an array with an item at '{path}'")));
            }
            Err(_) if is_safe => out.append_null()?,
            Err(Refusal::Mismatch(at)) => {
                let place = shown(&steps[..at]);
                let message = format!(
                    "The path '{path}' is incompatible with the variant value at '{place}' in `{name}`."
                );
                return Err(failure("VARIANT_PATH_TYPE_MISMATCH", message));
            }
            Err(Refusal::Known(field)) => {
                let message = format!("Failed to build variant because of a duplicate object key `{field}`.");
                return Err(failure("VARIANT_DUPLICATE_KEY", message));
            }
        }
    }
    Ok(Arc::new(out.finish()?))
}

/// Evaluates `variant_delete(variant, path)`: the variant without its part at a path. A path that is NULL
/// changes nothing.
pub fn delete(given: &Arguments) -> Result<ArrayRef> {
    let (values, paths) = (Variants::new(given.array(0)?)?, given.text(1)?);
    let (mut out, mut known) = (Column::new(given.rows()), Paths::new("variant_delete"));
    for (row, value) in values.iter().enumerate() {
        match value? {
            None => out.append_null()?,
            Some(value) if paths.is_null(row) => out.append_variant(&value)?,
            Some(value) => {
                let node = removed(Node::Whole(value), known.of(paths.value(row))?, 0);
                out.append(|encoder, bytes| node.write(encoder, bytes))?;
            }
        }
    }
    Ok(Arc::new(out.finish()?))
}

/// Evaluates `variant_strip_nulls(variant, items)`: the variant without the nulls in its objects and, unless
/// `items` is 0, in its arrays.
pub fn strip_nulls(given: &Arguments) -> Result<ArrayRef> {
    let (values, items) = (Variants::new(given.array(0)?)?, given.integers(1)?);
    let mut out = Column::new(given.rows());
    for (row, value) in values.iter().enumerate() {
        let Some(value) = value? else {
            out.append_null()?;
            continue;
        };
        let mut limits = Limits::of(&value);
        let node = Node::Whole(value).without_nulls(items.value(row) != 0, &mut limits)?;
        out.append(|encoder, bytes| node.write(encoder, bytes))?;
    }
    Ok(Arc::new(out.finish()?))
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Int32Array, StringArray};

    use super::super::evaluate;
    use super::*;

    fn parsed(text: &str) -> ArrayRef {
        evaluate(
            "parse_json",
            &[Arc::new(StringArray::from(vec![text])), Arc::new(Int32Array::from(vec![0]))],
        )
        .unwrap()
    }

    fn changed(function: &str, variant: &str, path: &str, value: &str) -> Result<ArrayRef> {
        let text = |text: &str| -> ArrayRef { Arc::new(StringArray::from(vec![text])) };
        let arguments =
            [parsed(variant), text(path), parsed(value), text(function), Arc::new(Int32Array::from(vec![1]))];
        evaluate("variant_change", &arguments)
    }

    #[test]
    fn bytes_are_those_of_spark() {
        let found = changed("variant_insert", r#"{"b":1,"c":{"z":1}}"#, "$.a", "1.50").unwrap();
        let of = |part: usize| found.as_struct().column(part).as_binary::<i32>().value(0).to_vec();
        assert_eq!(of(0), b"\x01\x04\x00\x01\x02\x03\x04bcza");
        assert_eq!(
            of(1),
            b"\x02\x03\x03\x00\x01\x09\x00\x02\x0f\x0c\x01\x02\x01\x02\x00\x02\x0c\
              \x01\x20\x02\x96\x00\x00\x00"
        );
    }

    #[test]
    fn an_array_is_not_filled_up_for_ever() {
        let error = changed("try_variant_set", "[1]", "$[2147483647]", "1").unwrap_err();
        assert!(error.to_string().contains("VARIANT_SIZE_LIMIT"), "{error}");
    }

    #[test]
    fn levels_are_bounded() {
        let deep = format!("${}", ".a".repeat(600));
        let once = changed("variant_set", "{}", &deep, "1").unwrap();
        let text = |text: &str| -> ArrayRef { Arc::new(StringArray::from(vec![text])) };
        let create: ArrayRef = Arc::new(Int32Array::from(vec![1]));
        for (path, value) in
            [(deep.as_str(), Arc::clone(&once)), (&format!("$.b{}", ".a".repeat(100_000)), parsed("1"))]
        {
            let error = evaluate(
                "variant_change",
                &[Arc::clone(&once), text(path), value, text("try_variant_set"), Arc::clone(&create)],
            );
            assert!(error.unwrap_err().to_string().contains("VARIANT_SIZE_LIMIT"));
        }
    }

    #[test]
    fn what_does_not_fit_says_where() {
        let error = changed("variant_insert", r#"{"a":[5]}"#, "$.a[0].b", "1").unwrap_err().to_string();
        assert!(
            error.contains(
                "'$.a[0].b' is incompatible with the variant value at '$.a[0]' in `variant_insert`"
            ),
            "{error}"
        );
        assert!(changed("try_variant_insert", r#"{"a":5}"#, "$.a.b", "1").unwrap().is_null(0));
    }
}
