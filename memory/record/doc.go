// Package record is one thing remembered: a text with its properties.
//
//   - A [Record] has fields with limits, which [Check] and [MetadataTerms] hold and
//     [Normalize] completes.
//   - [Encode] and [Decode] are its stored form, [Key] and its like where it stands;
//     memory/FORMAT.md is the layout. [Read], [Each] and [All] read records.
//   - [MetadataTerms] converts the values of the metadata into terms of the index,
//     [WalkMetadata] yields the values themselves.
//
// Nothing here writes. Values are not safe for concurrent change.
package record
