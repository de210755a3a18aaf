//! From the text of a filter to its tree.
//!
//! In: any text. Out: a [`Tree`], or the first fault with its column.
//! `not` binds more closely than `and`, and `and` more closely than `or`. A function for each of these calls the next, and
//! only parentheses and `not` lead back to an outer one, so that the depth of both bounds the depth of calls.
//! Two terms beside each other are a fault. A language in which a blank means `and` reads a value with a forgotten quote
//! as something else, without a word.

use super::expression::Expression;
use super::fault::{FILTER_BYTES_MAX, FILTER_DEPTH_MAX, FILTER_TERMS_MAX, FilterError, FilterFault, Found};
use super::fields::{self, FieldKind, FilterField};
use super::glob::Glob;
use super::lex::{Piece, Scanner, Written};
use super::operator::Operator;
use super::tree::{Asked, Comparison, TextSource, Tree};
use super::units::{self, StatusRange};

/// Reads a filter.
///
/// # Errors
/// The first fault.
pub(super) fn parse(text: &str) -> Result<Tree, FilterError> {
    let mut parser = Parser { scanner: Scanner::new(text), terms: 0 };
    if text.len() > FILTER_BYTES_MAX {
        return Err(parser.scanner.error(text.floor_char_boundary(FILTER_BYTES_MAX), FilterFault::TooLong));
    }
    let tree = parser.any(0)?;
    let (at, piece) = parser.scanner.piece()?;
    let fault = match piece {
        Piece::End => return Ok(tree),
        Piece::Close => FilterFault::Unopened,
        _ => FilterFault::WordMissing(parser.scanner.found(at)),
    };
    Err(parser.scanner.error(at, fault))
}

struct Parser<'t> {
    scanner: Scanner<'t>,
    terms: usize,
}

impl<'t> Parser<'t> {
    fn any(&mut self, depth: usize) -> Result<Tree, FilterError> {
        let mut trees = vec![self.all(depth)?];
        while self.takes(&Piece::Or)? {
            trees.push(self.all(depth)?);
        }
        Ok(Tree::any(trees))
    }

    fn all(&mut self, depth: usize) -> Result<Tree, FilterError> {
        let mut trees = vec![self.one(depth)?];
        while self.takes(&Piece::And)? {
            trees.push(self.one(depth)?);
        }
        Ok(Tree::all(trees))
    }

    fn one(&mut self, depth: usize) -> Result<Tree, FilterError> {
        let (at, piece) = self.scanner.piece()?;
        if matches!(piece, Piece::Not | Piece::Open) && depth >= FILTER_DEPTH_MAX {
            return Err(self.scanner.error(at, FilterFault::TooDeep));
        }
        match piece {
            Piece::Not => Ok(Tree::Not(Box::new(self.one(depth + 1)?))),
            Piece::Open => self.within(at, depth + 1),
            Piece::Word(word) => {
                self.count(at)?;
                Ok(Tree::Word(Glob::of_word(&word)))
            }
            Piece::Name(name) => Ok(Tree::Comparison(self.comparison(at, name)?)),
            Piece::End | Piece::Close | Piece::And | Piece::Or => {
                let found = FilterFault::TermExpected(self.scanner.found(at));
                Err(self.scanner.error(at, found))
            }
        }
    }

    /// What stands behind the `(` at `open`, and its end.
    fn within(&mut self, open: usize, depth: usize) -> Result<Tree, FilterError> {
        let tree = self.any(depth)?;
        let (at, piece) = self.scanner.piece()?;
        match piece {
            Piece::Close => Ok(tree),
            Piece::End => Err(self.scanner.error(open, FilterFault::Unclosed)),
            _ => Err(self.scanner.error(at, FilterFault::WordMissing(self.scanner.found(at)))),
        }
    }

    /// Steps over a piece, where it is this one.
    fn takes(&mut self, wanted: &Piece<'_>) -> Result<bool, FilterError> {
        let before = self.scanner;
        let is_next = self.scanner.piece()?.1 == *wanted;
        if !is_next {
            self.scanner = before;
        }
        Ok(is_next)
    }

    /// One term more, which begins at `at`.
    fn count(&mut self, at: usize) -> Result<(), FilterError> {
        self.terms += 1;
        match self.terms > FILTER_TERMS_MAX {
            true => Err(self.scanner.error(at, FilterFault::TooManyTerms)),
            false => Ok(()),
        }
    }

    fn comparison(&mut self, at: usize, name: &str) -> Result<Comparison, FilterError> {
        let field = fields::find(name).ok_or_else(|| {
            let fault = FilterFault::UnknownField { found: Found::new(name), nearest: fields::nearest(name) };
            self.scanner.error(at, fault)
        })?;
        let (at, written) = self.scanner.operator();
        let operator = Operator::read(written).ok_or_else(|| {
            let fault =
                FilterFault::UnknownOperator { found: Found::new(written), meant: Operator::meant(written) };
            self.scanner.error(at, fault)
        })?;
        let takes = field.kind.operators();
        if !takes.contains(&operator) {
            let fault = FilterFault::WrongOperator { operator, field: field.name, takes };
            return Err(self.scanner.error(at, fault));
        }
        let values = self.values(field, operator)?;
        Ok(Comparison { field, operator, asked: self.asked(field, operator, &values)? })
    }

    /// The values behind an operator: at least one.
    fn values(&mut self, field: &FilterField, operator: Operator) -> Result<Vec<Written<'t>>, FilterError> {
        let mut values = Vec::new();
        loop {
            let value = self.scanner.value(!operator.takes_expression())?;
            self.count(value.at)?;
            if value.is_absent() {
                let found = self.scanner.found(value.at);
                let fault = FilterFault::ValueExpected { field: field.name, operator, found };
                return Err(self.scanner.error(value.at, fault));
            }
            values.push(value);
            let before = self.scanner.at();
            if !self.scanner.comma() {
                return Ok(values);
            }
            if !operator.takes_list() {
                return Err(self.scanner.error(before, FilterFault::List(operator)));
            }
        }
    }

    fn asked(
        &self,
        field: &'static FilterField,
        operator: Operator,
        values: &[Written<'t>],
    ) -> Result<Asked, FilterError> {
        let (name, takes_class) = (field.name, operator.takes_list());
        Ok(match field.kind {
            FieldKind::Text(text) => self.text(TextSource::Field(text), field, operator, values)?,
            FieldKind::Url => self.text(TextSource::Url, field, operator, values)?,
            FieldKind::Cache => self.text(TextSource::Cache, field, operator, values)?,
            FieldKind::Time(time) => Asked::Times(time, self.each(values, |value| units::time(name, value))?),
            FieldKind::Bytes(size) => {
                Asked::Bytes(size, self.each(values, |value| units::bytes(name, value))?)
            }
            FieldKind::Count(count) => {
                Asked::Counts(count, self.each(values, |value| units::count(name, value))?)
            }
            FieldKind::Status => {
                Asked::Statuses(self.each(values, |value| StatusRange::read(name, value, takes_class))?)
            }
            FieldKind::Stored => Asked::Stored(self.each(values, |value| units::boolean(name, value))?),
        })
    }

    fn text(
        &self,
        source: TextSource,
        field: &FilterField,
        operator: Operator,
        values: &[Written<'t>],
    ) -> Result<Asked, FilterError> {
        if let ([value], true) = (values, operator.takes_expression()) {
            let compiled = Expression::compile(&value.text, field.ignores_case);
            let place = |(character, fault)| self.scanner.error(self.scanner.place(value, character), fault);
            return Ok(Asked::Expression(source, compiled.map_err(place)?));
        }
        let glob = |value: &Written<'t>| Glob::of_value(&value.text, field.ignores_case);
        Ok(Asked::Globs(source, values.iter().map(glob).collect()))
    }

    fn each<T>(
        &self,
        values: &[Written<'t>],
        read: impl Fn(&str) -> Result<T, FilterFault>,
    ) -> Result<Vec<T>, FilterError> {
        let read =
            |value: &Written<'t>| read(&value.text).map_err(|fault| self.scanner.error(value.at, fault));
        values.iter().map(read).collect()
    }
}
