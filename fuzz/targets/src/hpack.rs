//! Field blocks of one connection (RFC 7541): decoded within their bounds, and encoded again they are read as the same.
//!
//! In: blocks, each behind two octets with its length. Out: nothing, or a panic that says what does not hold.

use larder_http::field_block::Name;
use larder_listen::testing::{DecodeError, DecodedField, Decoder, Encoder, HeadLimits};

const TABLE_BYTES: u32 = 4096;
const LIMITS: HeadLimits = HeadLimits { fields_max: 100, bytes_max: 16 * 1024 };
/// So many times a limit ends a connection.
const EXCESS: usize = 4;

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<DecodedField<'static>>, DecodeError> {
    let mut fields = Vec::new();
    let counted = decoder.decode(block, &LIMITS, |field| fields.push(field.into_owned()))?;
    assert!(fields.len() <= LIMITS.fields_max && counted.bytes < EXCESS * LIMITS.bytes_max);
    assert!(counted.fields < EXCESS * LIMITS.fields_max && decoder.table().0 <= TABLE_BYTES as usize);
    Ok(fields)
}

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let mut theirs = Decoder::new(TABLE_BYTES);
    let (mut encoder, mut ours) = (Encoder::default(), Decoder::new(TABLE_BYTES));
    let mut rest = input;
    while let Some((length, blocks)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(blocks.len());
        let (block, behind) = blocks.split_at(length);
        rest = behind;
        let Ok(fields) = decode(&mut theirs, block) else { return };
        let regular = fields.into_iter().filter_map(|field| match field {
            DecodedField::Field(Name::Regular(name), value) => Some((name, value)),
            _ => None,
        });
        let regular: Vec<_> = regular.collect();
        // Twice, since a field enters the table at its second use.
        for _ in 0..2 {
            let mut out = Vec::new();
            let mut block = encoder.begin(&mut out);
            regular.iter().for_each(|(name, value)| block.field(name, value));
            let again = decode(&mut ours, &out).expect("what was encoded here");
            let same = regular
                .iter()
                .map(|(name, value)| DecodedField::Field(Name::Regular(name.clone()), value.clone()));
            assert!(again.into_iter().eq(same), "read as another");
            assert_eq!(encoder.table(), ours.table(), "the tables are in step");
        }
    }
}
