//! From the bytes of a template to its program, while they arrive.
//!
//! In: the decoded body, in pieces of any cut. Out: operations, which pages may run before the next piece is there. Of the body it
//! keeps at most the beginning of one directive. Any bytes may be fed to it: what is wrong becomes a problem with its place.
//! Deliberately absent: the text of the body, and what a directive means for a page ([`crate::run`]).

mod attribute;
mod directive;
mod esi;
mod scan;
mod sink;
mod ssi;

use std::sync::Arc;

use larder_http::target::reference::DocumentUri;
use larder_http::template::Language;

use crate::program::Program;
use scan::{Scanner, Syntax};
use sink::Sink;

/// Compiles one template. It is finished, or dropped with a body that broke; then its program never completes.
pub struct Compiler {
    scanner: Scanner,
    syntax: Either,
    sink: Sink,
}

enum Either {
    Ssi(ssi::Ssi),
    Esi(Box<esi::Esi>),
}

impl Compiler {
    /// For a template that its origin was asked for by `uri`.
    pub fn new(language: Language, uri: DocumentUri) -> Self {
        let syntax = match language {
            Language::Ssi => Either::Ssi(ssi::Ssi::default()),
            Language::Esi => Either::Esi(Box::default()),
        };
        let sink = Sink::new(Arc::new(Program::new(language, uri)));
        Self { scanner: Scanner::default(), syntax, sink }
    }

    /// The program, which grows with each piece.
    pub fn program(&self) -> &Arc<Program> {
        self.sink.program()
    }

    /// Reads the next piece of the body. Its operations are there when this returns.
    pub fn feed(&mut self, piece: &[u8]) {
        let syntax: &mut dyn Syntax = match &mut self.syntax {
            Either::Ssi(ssi) => ssi,
            Either::Esi(esi) => &mut **esi,
        };
        self.scanner.feed(piece, syntax, &mut self.sink);
    }

    /// The body has ended. The program is complete.
    pub fn finish(mut self) -> Arc<Program> {
        let syntax: &mut dyn Syntax = match &mut self.syntax {
            Either::Ssi(ssi) => ssi,
            Either::Esi(esi) => &mut **esi,
        };
        self.scanner.finish(syntax, &mut self.sink);
        self.sink.finish()
    }
}

/// Compiles a template that is there as a whole.
pub fn compile(language: Language, uri: DocumentUri, body: &[u8]) -> Arc<Program> {
    let mut compiler = Compiler::new(language, uri);
    compiler.feed(body);
    compiler.finish()
}

#[cfg(test)]
pub(crate) mod tests;
