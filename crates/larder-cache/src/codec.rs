//! Blocks of bytes of which a stored head is made.

/// Why bytes are no head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// Another version of larder wrote them.
    #[error("head of version {0}")]
    Version(u8),
    /// They are cut, or say what no head says.
    #[error("malformed head")]
    Malformed,
}

/// Adds a block: its length, then its bytes.
pub(crate) fn push(out: &mut Vec<u8>, block: &[u8]) {
    // Heads are bounded far below this; a block that were not is cut, and refused when it is read.
    let length = u32::try_from(block.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(block);
}

/// What is left to read.
pub(crate) struct Reading<'a>(&'a [u8]);

impl<'a> Reading<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], HeadError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(HeadError::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], HeadError> {
        self.take(N)?.try_into().map_err(|_| HeadError::Malformed)
    }

    pub(crate) fn number(&mut self) -> Result<u64, HeadError> {
        Ok(u64::from_le_bytes(*self.array()?))
    }

    pub(crate) fn block(&mut self) -> Result<&'a [u8], HeadError> {
        let length = u32::from_le_bytes(*self.array()?);
        self.take(usize::try_from(length).map_err(|_| HeadError::Malformed)?)
    }
}
