//! `section!`: a table of the config, declared once.
//!
//! Each key is a line: `name as "key": Type = default, in low ..= high, why "reason";` below its doc sentence. The
//! default is TOML (`"30s"`, `true`), or words in parentheses where it is worked out elsewhere, or `required`, or
//! left out where the type can be absent. `moved "old" to "hint";` names a key that stood here once. From this come the public struct with its docs, the reader, the names for
//! hints, and the description behind the reference and the JSON Schema. Each `flatten` adds another section's keys, and
//! `line` a field for the line on which the table begins.

macro_rules! section {
    (
        $(#[doc = $about:expr])+
        $visible:vis struct $name:ident in $title:literal {
            $(
                $(#[doc = $doc:expr])+
                $field:ident $(as $key:literal)? : $type:ty $(= $default:tt)?
                    $(, in $low:literal ..= $high:literal)?, why $why:literal;
            )*
            $(flatten $flat:ident : $flat_type:ty, $flat_doc:literal;)*
            $(line $line:ident, $line_doc:literal;)?
            $(moved $old:literal to $hint:literal;)*
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, Eq)]
        $visible struct $name {
            $($(#[doc = $doc])+ pub $field: $type,)*
            $(#[doc = $flat_doc] pub $flat: $flat_type,)*
            $(#[doc = $line_doc] pub $line: Option<usize>,)?
        }

        impl $crate::schema::Section for $name {
            const NAMES: &'static [&'static str] =
                &[$($crate::schema::section::key_name!($field $($key)?)),*];

            const MOVED: &'static [(&'static str, &'static str)] = &[$(($old, $hint)),*];

            fn doc() -> $crate::schema::SectionDoc {
                $crate::schema::SectionDoc {
                    name: stringify!($name),
                    title: $title,
                    about: &[$($about),+],
                    keys: vec![$($crate::schema::Key {
                        name: $crate::schema::section::key_name!($field $($key)?),
                        shape: <$type as $crate::schema::Setting>::shape(),
                        doc: &[$($doc),+],
                        fallback: $crate::schema::section::fallback!($($default)?),
                        why: $why,
                        bounds: $crate::schema::section::bounds!($($low $high)?),
                    }),*],
                    flattened: vec![$(<$flat_type as $crate::schema::Section>::doc),*],
                }
            }

            fn names() -> impl Iterator<Item = &'static str> {
                Self::NAMES.iter()$(.chain(<$flat_type as $crate::schema::Section>::NAMES))*.copied()
            }

            fn read_keys(
                table: &$crate::document::Table,
                at: &$crate::reading::At<'_>,
                reading: &mut $crate::reading::Reading<'_>,
            ) -> Self {
                let section = Self {
                    $($field: reading.key(
                        table,
                        at,
                        $crate::schema::section::key_name!($field $($key)?),
                        &$crate::schema::section::fallback!($($default)?),
                        $crate::schema::section::bounds!($($low $high)?),
                    ),)*
                    $($flat: <$flat_type as $crate::schema::Section>::read_keys(table, at, reading),)*
                    $($line: reading.line(&table.place),)?
                };
                $crate::schema::Consistent::check(&section, table, at, reading);
                section
            }
        }

        impl $crate::schema::Setting for $name {
            const IS_SECTION: bool = true;

            fn shape() -> $crate::schema::Shape {
                $crate::schema::Shape::Section(<Self as $crate::schema::Section>::doc)
            }

            fn read(
                node: &$crate::document::Node,
                at: &$crate::reading::At<'_>,
                reading: &mut $crate::reading::Reading<'_>,
            ) -> Option<Self> {
                let $crate::document::Value::Table(table) = &node.value else {
                    reading.refuse_value(node, at, "a table", None);
                    return None;
                };
                reading.unknown_keys::<Self>(table, at);
                Some(<Self as $crate::schema::Section>::read_keys(table, at, reading))
            }

            /// The table with every key left out.
            fn absent() -> Option<Self> {
                let place = $crate::document::Position::Text(0..0);
                let mut quiet = $crate::reading::Reading::quiet(std::path::Path::new("."));
                let empty = $crate::document::Table::empty(place);
                Some(<Self as $crate::schema::Section>::read_keys(&empty, &$crate::reading::At::Top, &mut quiet))
            }
        }
    };
}

macro_rules! key_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $key:literal) => {
        $key
    };
}

macro_rules! fallback {
    () => {
        $crate::schema::Fallback::Absent
    };
    (required) => {
        $crate::schema::Fallback::Required
    };
    (($words:literal)) => {
        $crate::schema::Fallback::Described($words)
    };
    ($toml:tt) => {
        $crate::schema::Fallback::Literal(stringify!($toml))
    };
}

macro_rules! bounds {
    () => {
        None
    };
    ($low:literal $high:literal) => {
        Some((stringify!($low), stringify!($high)))
    };
}

pub(crate) use {bounds, fallback, key_name, section};
