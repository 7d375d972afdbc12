// Values of the keyspace index. memory/FORMAT.md has the keys and the rules.
//
// Numbers are final: a field may be added, none changes its meaning or its number. An absent
// field is zero or empty; readers skip numbers that they do not know. A field with explicit
// presence is written even when it is zero: times, and some others.
//
// Pieces that are packed in a form of their own, all rebuilt from the records:
//
// Terms. A term is a field byte and a text, at most 100 bytes together:
//
// | field | text | postings carry |
// |---|---|---|
// | `w` | a word, as package `analysis` makes it from text, author and date of the event | frequencies |
// | `t` `n` `k` `s` `a` `o` | tag, key, kind, session, author, origin (`user`, `agent`, `tool`, `web`) | nothing |
// | `r` | review (`held`, `approved`, `rejected`), of records that have one | nothing |
// | `m` | metadata: path, kind, value | nothing |
// | `i` | id of the import that it came with | nothing |
// | `u` | field 60 of the record, with its sign bit flipped (be64) | nothing |
// | `b` | field 30 of the record, the agent that saved it, of records that have one | nothing |
//
// A text of 100 bytes or more is replaced by FF and the first 16 bytes of its SHA-256. A metadata
// path is the escaped text of each name; whenever it grows beyond 64 bytes it is replaced by 00 02
// and the first 16 bytes of its SHA-256. The kind is one byte: F8 text, F9 number, FA bool; FB,
// FC, FD the same in an array at the path; FE the path of an object or array, with the value
// `many` if the array has elements that are no terms. A number is written as its significant
// digits without zeros at either end, `e`, and the power of ten (`-25e-1` for -2.50), or `0`. A
// metadata term that would be too long is cut and ends in FF and the first 16 bytes of the SHA-256
// of its value.
//
// Frequency of a word: uvarint twice the body frequency, plus one if the word stands in the header
// (author, date); then, if so, uvarint the header frequency.
//
// Terms, in any order: size (uvarint) of field and text, field, text, and the frequency of a word.
//
// Columns: position 0 of the first block is empty, as there is no ordinal 0. A deleted document
// has zeros, or its place.
//
// Deleted set: format, then 1 and the steps from one ordinal to the next as uvarints, the first
// from -1, counted from the chunk's first ordinal; or 2 and a bit for each ordinal, in words of
// eight bytes, lowest byte and bit first. Count of a session: format, number.
//
// Chunk: format, then blocks in the order of their terms, then of ordinals:
//
//     shared, size (uvarints), suffix      the term: so much of the one before, and so many bytes
//     count (uvarint)                      postings in the block, 1 to 256
//     first (uvarint)                      first ordinal minus the segment's first
//     frequency                            only if count is 1, and of words
//     span, largest, bytes (uvarints)      only if count is more: last minus first ordinal, the largest
//                                          sum of a word's frequencies or 0, size of what follows
//     frequency of the first posting, then for each other one: step (uvarint) to its ordinal, frequency
//
// The first block of a chunk shares nothing. A chunk ends after 2 KiB, in segments of 4 MiB and
// more after 8 KiB, with the block that reaches it.
//
// Directory: format, number of chunks, and the first term of each as shared, size, suffix. Ids:
// format, then each id with its size before it; position 0 of the first block is empty.
//
// To turn a vector: divide it by its length, fill it up with zeros to a multiple of 64, and do
// three times: flip, mix the first numbers, as many as the largest power of two that fits; and, if
// that is not all, flip, mix the last as many. To flip: of each run of 64 numbers take the next 64
// bits of splitmix64, whose state starts at 6c6f6f6d62726964 (hex), the lowest first, and change
// the sign where the bit is 1. To mix: the Walsh-Hadamard transform, divided by the square root of
// the number of numbers.
//
// Centre: format (uvarint), largest standard deviation of an estimate, then the mean of the
// block's turned vectors, all IEEE 754 singles, lowest byte first.
//
// Codes: format, number of vectors n (uvarints), then n ordinals (4 bytes), n offsets and n
// factors (singles), n codes of 8-byte words, all lowest byte first. With r the turned vector
// minus the centre: bit j of the code is 1 where r's number j is positive, the offset is r times
// the centre, the factor is the square of r's length divided by the sum of its numbers without
// their signs.
//
// Fine codes: format, number of vectors n (uvarints), then n steps (singles, lowest byte first),
// then n codes of a byte for each number of r. The step is the largest number of r without its
// sign, divided by 127; the byte is how many steps the number is, to the nearest, plus 128. They
// stand in the order of the block's ordinals. Where vectors are long, packing puts only so many
// into a block that their fine codes take no more than 1,024,000 bytes.

// Code generated by protoc-gen-go. DO NOT EDIT.
// versions:
// 	protoc-gen-go v1.36.12
// 	protoc        (unknown)
// source: store/v1/index.proto

package storev1

import (
	protoreflect "google.golang.org/protobuf/reflect/protoreflect"
	protoimpl "google.golang.org/protobuf/runtime/protoimpl"
	reflect "reflect"
	sync "sync"
	unsafe "unsafe"
)

const (
	// Verify that this generated code is sufficiently up-to-date.
	_ = protoimpl.EnforceVersion(20 - protoimpl.MinVersion)
	// Verify that runtime/protoimpl is sufficiently up-to-date.
	_ = protoimpl.EnforceVersion(protoimpl.MaxVersion - 20)
)

// Head of a scope's index.
type Head struct {
	state protoimpl.MessageState `protogen:"open.v1"`
	// 2.
	Format uint64 `protobuf:"varint,1,opt,name=format" json:"format,omitempty"`
	// Active generation.
	Generation uint64 `protobuf:"varint,2,opt,name=generation" json:"generation,omitempty"`
	// Live documents.
	Live uint64 `protobuf:"varint,3,opt,name=live" json:"live,omitempty"`
	// Words of their bodies.
	BodyWords uint64 `protobuf:"varint,4,opt,name=body_words,json=bodyWords" json:"body_words,omitempty"`
	// Words of their headers.
	HeaderWords uint64 `protobuf:"varint,5,opt,name=header_words,json=headerWords" json:"header_words,omitempty"`
	// Last ordinal.
	Last uint64 `protobuf:"varint,6,opt,name=last" json:"last,omitempty"`
	// Last packed ordinal.
	Packed uint64 `protobuf:"varint,7,opt,name=packed" json:"packed,omitempty"`
	// Bytes of the tail's entries.
	TailBytes uint64 `protobuf:"varint,8,opt,name=tail_bytes,json=tailBytes" json:"tail_bytes,omitempty"`
	// Random, given with the first document; within it an ordinal names one document.
	Incarnation *uint64 `protobuf:"fixed64,9,opt,name=incarnation" json:"incarnation,omitempty"`
	// Sessions with a live document.
	Sessions uint64 `protobuf:"varint,10,opt,name=sessions" json:"sessions,omitempty"`
	// Live documents with a session.
	InSessions uint64 `protobuf:"varint,11,opt,name=in_sessions,json=inSessions" json:"in_sessions,omitempty"`
	// Deleted documents.
	Deleted uint64 `protobuf:"varint,12,opt,name=deleted" json:"deleted,omitempty"`
	// Deleted documents that segments leave out.
	LeftOut uint64 `protobuf:"varint,13,opt,name=left_out,json=leftOut" json:"left_out,omitempty"`
	// The index is being rebuilt, documents are missing.
	Rebuilding bool `protobuf:"varint,14,opt,name=rebuilding" json:"rebuilding,omitempty"`
	// Generation whose keys are being deleted.
	Dropping uint64 `protobuf:"varint,15,opt,name=dropping" json:"dropping,omitempty"`
	// Analysis that made the terms of words, such as `english/1`: language and version.
	Analysis string `protobuf:"bytes,16,opt,name=analysis" json:"analysis,omitempty"`
	// While it is rebuilt: the last ordinal of the index before, up to which all are deleted or
	// built anew.
	Before        uint64 `protobuf:"varint,17,opt,name=before" json:"before,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *Head) Reset() {
	*x = Head{}
	mi := &file_store_v1_index_proto_msgTypes[0]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *Head) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*Head) ProtoMessage() {}

func (x *Head) ProtoReflect() protoreflect.Message {
	mi := &file_store_v1_index_proto_msgTypes[0]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use Head.ProtoReflect.Descriptor instead.
func (*Head) Descriptor() ([]byte, []int) {
	return file_store_v1_index_proto_rawDescGZIP(), []int{0}
}

func (x *Head) GetFormat() uint64 {
	if x != nil {
		return x.Format
	}
	return 0
}

func (x *Head) GetGeneration() uint64 {
	if x != nil {
		return x.Generation
	}
	return 0
}

func (x *Head) GetLive() uint64 {
	if x != nil {
		return x.Live
	}
	return 0
}

func (x *Head) GetBodyWords() uint64 {
	if x != nil {
		return x.BodyWords
	}
	return 0
}

func (x *Head) GetHeaderWords() uint64 {
	if x != nil {
		return x.HeaderWords
	}
	return 0
}

func (x *Head) GetLast() uint64 {
	if x != nil {
		return x.Last
	}
	return 0
}

func (x *Head) GetPacked() uint64 {
	if x != nil {
		return x.Packed
	}
	return 0
}

func (x *Head) GetTailBytes() uint64 {
	if x != nil {
		return x.TailBytes
	}
	return 0
}

func (x *Head) GetIncarnation() uint64 {
	if x != nil && x.Incarnation != nil {
		return *x.Incarnation
	}
	return 0
}

func (x *Head) GetSessions() uint64 {
	if x != nil {
		return x.Sessions
	}
	return 0
}

func (x *Head) GetInSessions() uint64 {
	if x != nil {
		return x.InSessions
	}
	return 0
}

func (x *Head) GetDeleted() uint64 {
	if x != nil {
		return x.Deleted
	}
	return 0
}

func (x *Head) GetLeftOut() uint64 {
	if x != nil {
		return x.LeftOut
	}
	return 0
}

func (x *Head) GetRebuilding() bool {
	if x != nil {
		return x.Rebuilding
	}
	return false
}

func (x *Head) GetDropping() uint64 {
	if x != nil {
		return x.Dropping
	}
	return 0
}

func (x *Head) GetAnalysis() string {
	if x != nil {
		return x.Analysis
	}
	return ""
}

func (x *Head) GetBefore() uint64 {
	if x != nil {
		return x.Before
	}
	return 0
}

// List of segments.
type Segments struct {
	state protoimpl.MessageState `protogen:"open.v1"`
	// 2.
	Format uint64 `protobuf:"varint,1,opt,name=format" json:"format,omitempty"`
	// Last id given out.
	LastId uint64 `protobuf:"varint,2,opt,name=last_id,json=lastId" json:"last_id,omitempty"`
	// Segments, in order of ordinals.
	Segments []*Segment `protobuf:"bytes,3,rep,name=segments" json:"segments,omitempty"`
	// Segment that is building.
	Building *Segment `protobuf:"bytes,4,opt,name=building" json:"building,omitempty"`
	// Dropped ids.
	Dropped       []uint64 `protobuf:"varint,5,rep,name=dropped" json:"dropped,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *Segments) Reset() {
	*x = Segments{}
	mi := &file_store_v1_index_proto_msgTypes[1]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *Segments) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*Segments) ProtoMessage() {}

func (x *Segments) ProtoReflect() protoreflect.Message {
	mi := &file_store_v1_index_proto_msgTypes[1]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use Segments.ProtoReflect.Descriptor instead.
func (*Segments) Descriptor() ([]byte, []int) {
	return file_store_v1_index_proto_rawDescGZIP(), []int{1}
}

func (x *Segments) GetFormat() uint64 {
	if x != nil {
		return x.Format
	}
	return 0
}

func (x *Segments) GetLastId() uint64 {
	if x != nil {
		return x.LastId
	}
	return 0
}

func (x *Segments) GetSegments() []*Segment {
	if x != nil {
		return x.Segments
	}
	return nil
}

func (x *Segments) GetBuilding() *Segment {
	if x != nil {
		return x.Building
	}
	return nil
}

func (x *Segments) GetDropped() []uint64 {
	if x != nil {
		return x.Dropped
	}
	return nil
}

// A segment.
type Segment struct {
	state protoimpl.MessageState `protogen:"open.v1"`
	// Id.
	Id uint64 `protobuf:"varint,1,opt,name=id" json:"id,omitempty"`
	// Random, never used twice.
	Stamp *uint64 `protobuf:"fixed64,2,opt,name=stamp" json:"stamp,omitempty"`
	// First ordinal.
	First uint64 `protobuf:"varint,3,opt,name=first" json:"first,omitempty"`
	// Last ordinal.
	Last uint64 `protobuf:"varint,4,opt,name=last" json:"last,omitempty"`
	// Level.
	Level uint64 `protobuf:"varint,5,opt,name=level" json:"level,omitempty"`
	// Bytes of its chunks.
	Bytes uint64 `protobuf:"varint,6,opt,name=bytes" json:"bytes,omitempty"`
	// Documents that it leaves out because they were deleted.
	LeftOut       uint64 `protobuf:"varint,7,opt,name=left_out,json=leftOut" json:"left_out,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *Segment) Reset() {
	*x = Segment{}
	mi := &file_store_v1_index_proto_msgTypes[2]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *Segment) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*Segment) ProtoMessage() {}

func (x *Segment) ProtoReflect() protoreflect.Message {
	mi := &file_store_v1_index_proto_msgTypes[2]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use Segment.ProtoReflect.Descriptor instead.
func (*Segment) Descriptor() ([]byte, []int) {
	return file_store_v1_index_proto_rawDescGZIP(), []int{2}
}

func (x *Segment) GetId() uint64 {
	if x != nil {
		return x.Id
	}
	return 0
}

func (x *Segment) GetStamp() uint64 {
	if x != nil && x.Stamp != nil {
		return *x.Stamp
	}
	return 0
}

func (x *Segment) GetFirst() uint64 {
	if x != nil {
		return x.First
	}
	return 0
}

func (x *Segment) GetLast() uint64 {
	if x != nil {
		return x.Last
	}
	return 0
}

func (x *Segment) GetLevel() uint64 {
	if x != nil {
		return x.Level
	}
	return 0
}

func (x *Segment) GetBytes() uint64 {
	if x != nil {
		return x.Bytes
	}
	return 0
}

func (x *Segment) GetLeftOut() uint64 {
	if x != nil {
		return x.LeftOut
	}
	return 0
}

// A document of the tail; of a field that comes twice the last one counts.
type Entry struct {
	state protoimpl.MessageState `protogen:"open.v1"`
	// 2.
	Format uint64 `protobuf:"varint,1,opt,name=format" json:"format,omitempty"`
	// Id.
	Id string `protobuf:"bytes,2,opt,name=id" json:"id,omitempty"`
	// Words of the body.
	BodyWords uint64 `protobuf:"varint,3,opt,name=body_words,json=bodyWords" json:"body_words,omitempty"`
	// Words of the header.
	HeaderWords uint64 `protobuf:"varint,4,opt,name=header_words,json=headerWords" json:"header_words,omitempty"`
	// Terms.
	Terms []byte `protobuf:"bytes,5,opt,name=terms" json:"terms,omitempty"`
	// µs.
	ExpireTime int64 `protobuf:"zigzag64,6,opt,name=expire_time,json=expireTime" json:"expire_time,omitempty"`
	// Ordinal of the document that it supersedes.
	Supersedes uint64 `protobuf:"varint,7,opt,name=supersedes" json:"supersedes,omitempty"`
	// Terms, deflated (RFC 1951), instead of 5 when they have more than 512 KiB.
	DeflatedTerms []byte `protobuf:"bytes,8,opt,name=deflated_terms,json=deflatedTerms" json:"deflated_terms,omitempty"`
	// First eight bytes of the SHA-256 of the session's id, highest first; 1 for 0.
	Session uint64 `protobuf:"fixed64,9,opt,name=session" json:"session,omitempty"`
	// NFKC, case folded, words of letters, marks and digits joined by one space, at most 256
	// bytes.
	Author string `protobuf:"bytes,10,opt,name=author" json:"author,omitempty"`
	// µs.
	EventTime int64 `protobuf:"zigzag64,11,opt,name=event_time,json=eventTime" json:"event_time,omitempty"`
	// µs.
	CreateTime int64 `protobuf:"zigzag64,12,opt,name=create_time,json=createTime" json:"create_time,omitempty"`
	// Bits of an IEEE 754 single.
	Importance uint64 `protobuf:"varint,13,opt,name=importance" json:"importance,omitempty"`
	// Tier.
	Tier uint64 `protobuf:"varint,14,opt,name=tier" json:"tier,omitempty"`
	// 1 pinned, 2 archived, 4 quarantined, 8 asks, 16 has a time, 32 a number, 64 a name, 128 a
	// change.
	Flags uint64 `protobuf:"varint,15,opt,name=flags" json:"flags,omitempty"`
	// The ordinal whose place it has, that of a document in its own; absent: its own.
	Place uint64 `protobuf:"varint,16,opt,name=place" json:"place,omitempty"`
	// When it was superseded, if the document itself says so, µs.
	SupersededTime int64 `protobuf:"zigzag64,17,opt,name=superseded_time,json=supersededTime" json:"superseded_time,omitempty"`
	unknownFields  protoimpl.UnknownFields
	sizeCache      protoimpl.SizeCache
}

func (x *Entry) Reset() {
	*x = Entry{}
	mi := &file_store_v1_index_proto_msgTypes[3]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *Entry) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*Entry) ProtoMessage() {}

func (x *Entry) ProtoReflect() protoreflect.Message {
	mi := &file_store_v1_index_proto_msgTypes[3]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use Entry.ProtoReflect.Descriptor instead.
func (*Entry) Descriptor() ([]byte, []int) {
	return file_store_v1_index_proto_rawDescGZIP(), []int{3}
}

func (x *Entry) GetFormat() uint64 {
	if x != nil {
		return x.Format
	}
	return 0
}

func (x *Entry) GetId() string {
	if x != nil {
		return x.Id
	}
	return ""
}

func (x *Entry) GetBodyWords() uint64 {
	if x != nil {
		return x.BodyWords
	}
	return 0
}

func (x *Entry) GetHeaderWords() uint64 {
	if x != nil {
		return x.HeaderWords
	}
	return 0
}

func (x *Entry) GetTerms() []byte {
	if x != nil {
		return x.Terms
	}
	return nil
}

func (x *Entry) GetExpireTime() int64 {
	if x != nil {
		return x.ExpireTime
	}
	return 0
}

func (x *Entry) GetSupersedes() uint64 {
	if x != nil {
		return x.Supersedes
	}
	return 0
}

func (x *Entry) GetDeflatedTerms() []byte {
	if x != nil {
		return x.DeflatedTerms
	}
	return nil
}

func (x *Entry) GetSession() uint64 {
	if x != nil {
		return x.Session
	}
	return 0
}

func (x *Entry) GetAuthor() string {
	if x != nil {
		return x.Author
	}
	return ""
}

func (x *Entry) GetEventTime() int64 {
	if x != nil {
		return x.EventTime
	}
	return 0
}

func (x *Entry) GetCreateTime() int64 {
	if x != nil {
		return x.CreateTime
	}
	return 0
}

func (x *Entry) GetImportance() uint64 {
	if x != nil {
		return x.Importance
	}
	return 0
}

func (x *Entry) GetTier() uint64 {
	if x != nil {
		return x.Tier
	}
	return 0
}

func (x *Entry) GetFlags() uint64 {
	if x != nil {
		return x.Flags
	}
	return 0
}

func (x *Entry) GetPlace() uint64 {
	if x != nil {
		return x.Place
	}
	return 0
}

func (x *Entry) GetSupersededTime() int64 {
	if x != nil {
		return x.SupersededTime
	}
	return 0
}

// Columns of 1024 packed documents; all but 1, 2, 5, 7 and 18 are a uvarint for each document,
// absent if all are zero.
type Columns struct {
	state protoimpl.MessageState `protogen:"open.v1"`
	// 2.
	Format uint64 `protobuf:"varint,1,opt,name=format" json:"format,omitempty"`
	// Number of documents.
	Count uint64 `protobuf:"varint,2,opt,name=count" json:"count,omitempty"`
	// Words of the body.
	BodyWords []byte `protobuf:"bytes,3,opt,name=body_words,json=bodyWords" json:"body_words,omitempty"`
	// Words of the header.
	HeaderWords []byte `protobuf:"bytes,4,opt,name=header_words,json=headerWords" json:"header_words,omitempty"`
	// The block's sessions, eight bytes each, highest first.
	Sessions []byte `protobuf:"bytes,5,opt,name=sessions" json:"sessions,omitempty"`
	// Of each document the number of its session among them from 1, or 0.
	Session []byte `protobuf:"bytes,6,opt,name=session" json:"session,omitempty"`
	// Names of authors.
	Authors []string `protobuf:"bytes,7,rep,name=authors" json:"authors,omitempty"`
	// Of each document the number of its author.
	Author []byte `protobuf:"bytes,8,opt,name=author" json:"author,omitempty"`
	// Times: 0 for none, else 1 more than the zigzag of the step from the last one that was not
	// 0.
	EventTime []byte `protobuf:"bytes,9,opt,name=event_time,json=eventTime" json:"event_time,omitempty"`
	// As 9.
	CreateTime []byte `protobuf:"bytes,10,opt,name=create_time,json=createTime" json:"create_time,omitempty"`
	// As 9.
	ExpireTime []byte `protobuf:"bytes,11,opt,name=expire_time,json=expireTime" json:"expire_time,omitempty"`
	// As 9.
	SupersededTime []byte `protobuf:"bytes,12,opt,name=superseded_time,json=supersededTime" json:"superseded_time,omitempty"`
	// How far before the document the one lies that it supersedes, or 0.
	Supersedes []byte `protobuf:"bytes,13,opt,name=supersedes" json:"supersedes,omitempty"`
	// As in an entry.
	Importance []byte `protobuf:"bytes,14,opt,name=importance" json:"importance,omitempty"`
	// As in an entry.
	Tier []byte `protobuf:"bytes,15,opt,name=tier" json:"tier,omitempty"`
	// As in an entry.
	Flags []byte `protobuf:"bytes,16,opt,name=flags" json:"flags,omitempty"`
	// How far before the document the one lies whose place it has, or 0.
	Place []byte `protobuf:"bytes,17,opt,name=place" json:"place,omitempty"`
	// Only with few documents that have a number other than zero: the steps from one of them to
	// the next, the first from -1. It stands before the columns, which have numbers for those
	// documents alone.
	Present       []byte `protobuf:"bytes,18,opt,name=present" json:"present,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *Columns) Reset() {
	*x = Columns{}
	mi := &file_store_v1_index_proto_msgTypes[4]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *Columns) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*Columns) ProtoMessage() {}

func (x *Columns) ProtoReflect() protoreflect.Message {
	mi := &file_store_v1_index_proto_msgTypes[4]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use Columns.ProtoReflect.Descriptor instead.
func (*Columns) Descriptor() ([]byte, []int) {
	return file_store_v1_index_proto_rawDescGZIP(), []int{4}
}

func (x *Columns) GetFormat() uint64 {
	if x != nil {
		return x.Format
	}
	return 0
}

func (x *Columns) GetCount() uint64 {
	if x != nil {
		return x.Count
	}
	return 0
}

func (x *Columns) GetBodyWords() []byte {
	if x != nil {
		return x.BodyWords
	}
	return nil
}

func (x *Columns) GetHeaderWords() []byte {
	if x != nil {
		return x.HeaderWords
	}
	return nil
}

func (x *Columns) GetSessions() []byte {
	if x != nil {
		return x.Sessions
	}
	return nil
}

func (x *Columns) GetSession() []byte {
	if x != nil {
		return x.Session
	}
	return nil
}

func (x *Columns) GetAuthors() []string {
	if x != nil {
		return x.Authors
	}
	return nil
}

func (x *Columns) GetAuthor() []byte {
	if x != nil {
		return x.Author
	}
	return nil
}

func (x *Columns) GetEventTime() []byte {
	if x != nil {
		return x.EventTime
	}
	return nil
}

func (x *Columns) GetCreateTime() []byte {
	if x != nil {
		return x.CreateTime
	}
	return nil
}

func (x *Columns) GetExpireTime() []byte {
	if x != nil {
		return x.ExpireTime
	}
	return nil
}

func (x *Columns) GetSupersededTime() []byte {
	if x != nil {
		return x.SupersededTime
	}
	return nil
}

func (x *Columns) GetSupersedes() []byte {
	if x != nil {
		return x.Supersedes
	}
	return nil
}

func (x *Columns) GetImportance() []byte {
	if x != nil {
		return x.Importance
	}
	return nil
}

func (x *Columns) GetTier() []byte {
	if x != nil {
		return x.Tier
	}
	return nil
}

func (x *Columns) GetFlags() []byte {
	if x != nil {
		return x.Flags
	}
	return nil
}

func (x *Columns) GetPlace() []byte {
	if x != nil {
		return x.Place
	}
	return nil
}

func (x *Columns) GetPresent() []byte {
	if x != nil {
		return x.Present
	}
	return nil
}

// Head of the codes of a space of vectors.
type CodesHead struct {
	state protoimpl.MessageState `protogen:"open.v1"`
	// 1.
	Format uint64 `protobuf:"varint,1,opt,name=format" json:"format,omitempty"`
	// Random, chosen with the first vector.
	Stamp *uint64 `protobuf:"fixed64,2,opt,name=stamp" json:"stamp,omitempty"`
	// Last slot.
	Last uint64 `protobuf:"varint,3,opt,name=last" json:"last,omitempty"`
	// Last packed slot.
	Packed uint64 `protobuf:"varint,4,opt,name=packed" json:"packed,omitempty"`
	// Vectors.
	Vectors uint64 `protobuf:"varint,5,opt,name=vectors" json:"vectors,omitempty"`
	// Garbage entries.
	Garbage uint64 `protobuf:"varint,6,opt,name=garbage" json:"garbage,omitempty"`
	// Last block id.
	LastBlock uint64 `protobuf:"varint,7,opt,name=last_block,json=lastBlock" json:"last_block,omitempty"`
	// Vectors removed or replaced, ever.
	Removed       uint64 `protobuf:"varint,8,opt,name=removed" json:"removed,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *CodesHead) Reset() {
	*x = CodesHead{}
	mi := &file_store_v1_index_proto_msgTypes[5]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *CodesHead) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*CodesHead) ProtoMessage() {}

func (x *CodesHead) ProtoReflect() protoreflect.Message {
	mi := &file_store_v1_index_proto_msgTypes[5]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use CodesHead.ProtoReflect.Descriptor instead.
func (*CodesHead) Descriptor() ([]byte, []int) {
	return file_store_v1_index_proto_rawDescGZIP(), []int{5}
}

func (x *CodesHead) GetFormat() uint64 {
	if x != nil {
		return x.Format
	}
	return 0
}

func (x *CodesHead) GetStamp() uint64 {
	if x != nil && x.Stamp != nil {
		return *x.Stamp
	}
	return 0
}

func (x *CodesHead) GetLast() uint64 {
	if x != nil {
		return x.Last
	}
	return 0
}

func (x *CodesHead) GetPacked() uint64 {
	if x != nil {
		return x.Packed
	}
	return 0
}

func (x *CodesHead) GetVectors() uint64 {
	if x != nil {
		return x.Vectors
	}
	return 0
}

func (x *CodesHead) GetGarbage() uint64 {
	if x != nil {
		return x.Garbage
	}
	return 0
}

func (x *CodesHead) GetLastBlock() uint64 {
	if x != nil {
		return x.LastBlock
	}
	return 0
}

func (x *CodesHead) GetRemoved() uint64 {
	if x != nil {
		return x.Removed
	}
	return 0
}

// List of blocks of codes.
type Blocks struct {
	state protoimpl.MessageState `protogen:"open.v1"`
	// 1.
	Format uint64 `protobuf:"varint,1,opt,name=format" json:"format,omitempty"`
	// Blocks.
	Blocks        []*Block `protobuf:"bytes,2,rep,name=blocks" json:"blocks,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *Blocks) Reset() {
	*x = Blocks{}
	mi := &file_store_v1_index_proto_msgTypes[6]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *Blocks) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*Blocks) ProtoMessage() {}

func (x *Blocks) ProtoReflect() protoreflect.Message {
	mi := &file_store_v1_index_proto_msgTypes[6]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use Blocks.ProtoReflect.Descriptor instead.
func (*Blocks) Descriptor() ([]byte, []int) {
	return file_store_v1_index_proto_rawDescGZIP(), []int{6}
}

func (x *Blocks) GetFormat() uint64 {
	if x != nil {
		return x.Format
	}
	return 0
}

func (x *Blocks) GetBlocks() []*Block {
	if x != nil {
		return x.Blocks
	}
	return nil
}

// A block of codes.
type Block struct {
	state protoimpl.MessageState `protogen:"open.v1"`
	// Id.
	Id uint64 `protobuf:"varint,1,opt,name=id" json:"id,omitempty"`
	// Number of vectors.
	Vectors uint64 `protobuf:"varint,2,opt,name=vectors" json:"vectors,omitempty"`
	// A block of neighbours.
	Neighbours bool `protobuf:"varint,3,opt,name=neighbours" json:"neighbours,omitempty"`
	// It has fine codes. Blocks written before there were any get them with the next
	// packing.
	Fine          bool `protobuf:"varint,4,opt,name=fine" json:"fine,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *Block) Reset() {
	*x = Block{}
	mi := &file_store_v1_index_proto_msgTypes[7]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *Block) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*Block) ProtoMessage() {}

func (x *Block) ProtoReflect() protoreflect.Message {
	mi := &file_store_v1_index_proto_msgTypes[7]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use Block.ProtoReflect.Descriptor instead.
func (*Block) Descriptor() ([]byte, []int) {
	return file_store_v1_index_proto_rawDescGZIP(), []int{7}
}

func (x *Block) GetId() uint64 {
	if x != nil {
		return x.Id
	}
	return 0
}

func (x *Block) GetVectors() uint64 {
	if x != nil {
		return x.Vectors
	}
	return 0
}

func (x *Block) GetNeighbours() bool {
	if x != nil {
		return x.Neighbours
	}
	return false
}

func (x *Block) GetFine() bool {
	if x != nil {
		return x.Fine
	}
	return false
}

var File_store_v1_index_proto protoreflect.FileDescriptor

const file_store_v1_index_proto_rawDesc = "" +
	"\n" +
	"\x14store/v1/index.proto\x12\bstore.v1\"\xea\x03\n" +
	"\x04Head\x12\x16\n" +
	"\x06format\x18\x01 \x01(\x04R\x06format\x12\x1e\n" +
	"\n" +
	"generation\x18\x02 \x01(\x04R\n" +
	"generation\x12\x12\n" +
	"\x04live\x18\x03 \x01(\x04R\x04live\x12\x1d\n" +
	"\n" +
	"body_words\x18\x04 \x01(\x04R\tbodyWords\x12!\n" +
	"\fheader_words\x18\x05 \x01(\x04R\vheaderWords\x12\x12\n" +
	"\x04last\x18\x06 \x01(\x04R\x04last\x12\x16\n" +
	"\x06packed\x18\a \x01(\x04R\x06packed\x12\x1d\n" +
	"\n" +
	"tail_bytes\x18\b \x01(\x04R\ttailBytes\x12'\n" +
	"\vincarnation\x18\t \x01(\x06B\x05\xaa\x01\x02\b\x01R\vincarnation\x12\x1a\n" +
	"\bsessions\x18\n" +
	" \x01(\x04R\bsessions\x12\x1f\n" +
	"\vin_sessions\x18\v \x01(\x04R\n" +
	"inSessions\x12\x18\n" +
	"\adeleted\x18\f \x01(\x04R\adeleted\x12\x19\n" +
	"\bleft_out\x18\r \x01(\x04R\aleftOut\x12\x1e\n" +
	"\n" +
	"rebuilding\x18\x0e \x01(\bR\n" +
	"rebuilding\x12\x1a\n" +
	"\bdropping\x18\x0f \x01(\x04R\bdropping\x12\x1a\n" +
	"\banalysis\x18\x10 \x01(\tR\banalysis\x12\x16\n" +
	"\x06before\x18\x11 \x01(\x04R\x06before\"\xb3\x01\n" +
	"\bSegments\x12\x16\n" +
	"\x06format\x18\x01 \x01(\x04R\x06format\x12\x17\n" +
	"\alast_id\x18\x02 \x01(\x04R\x06lastId\x12-\n" +
	"\bsegments\x18\x03 \x03(\v2\x11.store.v1.SegmentR\bsegments\x12-\n" +
	"\bbuilding\x18\x04 \x01(\v2\x11.store.v1.SegmentR\bbuilding\x12\x18\n" +
	"\adropped\x18\x05 \x03(\x04R\adropped\"\xa7\x01\n" +
	"\aSegment\x12\x0e\n" +
	"\x02id\x18\x01 \x01(\x04R\x02id\x12\x1b\n" +
	"\x05stamp\x18\x02 \x01(\x06B\x05\xaa\x01\x02\b\x01R\x05stamp\x12\x14\n" +
	"\x05first\x18\x03 \x01(\x04R\x05first\x12\x12\n" +
	"\x04last\x18\x04 \x01(\x04R\x04last\x12\x14\n" +
	"\x05level\x18\x05 \x01(\x04R\x05level\x12\x14\n" +
	"\x05bytes\x18\x06 \x01(\x04R\x05bytes\x12\x19\n" +
	"\bleft_out\x18\a \x01(\x04R\aleftOut\"\xea\x03\n" +
	"\x05Entry\x12\x16\n" +
	"\x06format\x18\x01 \x01(\x04R\x06format\x12\x0e\n" +
	"\x02id\x18\x02 \x01(\tR\x02id\x12\x1d\n" +
	"\n" +
	"body_words\x18\x03 \x01(\x04R\tbodyWords\x12!\n" +
	"\fheader_words\x18\x04 \x01(\x04R\vheaderWords\x12\x14\n" +
	"\x05terms\x18\x05 \x01(\fR\x05terms\x12\x1f\n" +
	"\vexpire_time\x18\x06 \x01(\x12R\n" +
	"expireTime\x12\x1e\n" +
	"\n" +
	"supersedes\x18\a \x01(\x04R\n" +
	"supersedes\x12%\n" +
	"\x0edeflated_terms\x18\b \x01(\fR\rdeflatedTerms\x12\x18\n" +
	"\asession\x18\t \x01(\x06R\asession\x12\x16\n" +
	"\x06author\x18\n" +
	" \x01(\tR\x06author\x12\x1d\n" +
	"\n" +
	"event_time\x18\v \x01(\x12R\teventTime\x12\x1f\n" +
	"\vcreate_time\x18\f \x01(\x12R\n" +
	"createTime\x12\x1e\n" +
	"\n" +
	"importance\x18\r \x01(\x04R\n" +
	"importance\x12\x12\n" +
	"\x04tier\x18\x0e \x01(\x04R\x04tier\x12\x14\n" +
	"\x05flags\x18\x0f \x01(\x04R\x05flags\x12\x14\n" +
	"\x05place\x18\x10 \x01(\x04R\x05place\x12'\n" +
	"\x0fsuperseded_time\x18\x11 \x01(\x12R\x0esupersededTime\"\x85\x04\n" +
	"\aColumns\x12\x16\n" +
	"\x06format\x18\x01 \x01(\x04R\x06format\x12\x14\n" +
	"\x05count\x18\x02 \x01(\x04R\x05count\x12\x1d\n" +
	"\n" +
	"body_words\x18\x03 \x01(\fR\tbodyWords\x12!\n" +
	"\fheader_words\x18\x04 \x01(\fR\vheaderWords\x12\x1a\n" +
	"\bsessions\x18\x05 \x01(\fR\bsessions\x12\x18\n" +
	"\asession\x18\x06 \x01(\fR\asession\x12\x18\n" +
	"\aauthors\x18\a \x03(\tR\aauthors\x12\x16\n" +
	"\x06author\x18\b \x01(\fR\x06author\x12\x1d\n" +
	"\n" +
	"event_time\x18\t \x01(\fR\teventTime\x12\x1f\n" +
	"\vcreate_time\x18\n" +
	" \x01(\fR\n" +
	"createTime\x12\x1f\n" +
	"\vexpire_time\x18\v \x01(\fR\n" +
	"expireTime\x12'\n" +
	"\x0fsuperseded_time\x18\f \x01(\fR\x0esupersededTime\x12\x1e\n" +
	"\n" +
	"supersedes\x18\r \x01(\fR\n" +
	"supersedes\x12\x1e\n" +
	"\n" +
	"importance\x18\x0e \x01(\fR\n" +
	"importance\x12\x12\n" +
	"\x04tier\x18\x0f \x01(\fR\x04tier\x12\x14\n" +
	"\x05flags\x18\x10 \x01(\fR\x05flags\x12\x14\n" +
	"\x05place\x18\x11 \x01(\fR\x05place\x12\x18\n" +
	"\apresent\x18\x12 \x01(\fR\apresent\"\xd9\x01\n" +
	"\tCodesHead\x12\x16\n" +
	"\x06format\x18\x01 \x01(\x04R\x06format\x12\x1b\n" +
	"\x05stamp\x18\x02 \x01(\x06B\x05\xaa\x01\x02\b\x01R\x05stamp\x12\x12\n" +
	"\x04last\x18\x03 \x01(\x04R\x04last\x12\x16\n" +
	"\x06packed\x18\x04 \x01(\x04R\x06packed\x12\x18\n" +
	"\avectors\x18\x05 \x01(\x04R\avectors\x12\x18\n" +
	"\agarbage\x18\x06 \x01(\x04R\agarbage\x12\x1d\n" +
	"\n" +
	"last_block\x18\a \x01(\x04R\tlastBlock\x12\x18\n" +
	"\aremoved\x18\b \x01(\x04R\aremoved\"I\n" +
	"\x06Blocks\x12\x16\n" +
	"\x06format\x18\x01 \x01(\x04R\x06format\x12'\n" +
	"\x06blocks\x18\x02 \x03(\v2\x0f.store.v1.BlockR\x06blocks\"e\n" +
	"\x05Block\x12\x0e\n" +
	"\x02id\x18\x01 \x01(\x04R\x02id\x12\x18\n" +
	"\avectors\x18\x02 \x01(\x04R\avectors\x12\x1e\n" +
	"\n" +
	"neighbours\x18\x03 \x01(\bR\n" +
	"neighbours\x12\x12\n" +
	"\x04fine\x18\x04 \x01(\bR\x04fineBHZ=github.com/loom-bridge/loom-bridge/proto/gen/store/v1;storev1\x92\x03\x06\b\x02\x18\x02 \x03b\beditionsp\xe8\a"

var (
	file_store_v1_index_proto_rawDescOnce sync.Once
	file_store_v1_index_proto_rawDescData []byte
)

func file_store_v1_index_proto_rawDescGZIP() []byte {
	file_store_v1_index_proto_rawDescOnce.Do(func() {
		file_store_v1_index_proto_rawDescData = protoimpl.X.CompressGZIP(unsafe.Slice(unsafe.StringData(file_store_v1_index_proto_rawDesc), len(file_store_v1_index_proto_rawDesc)))
	})
	return file_store_v1_index_proto_rawDescData
}

var file_store_v1_index_proto_msgTypes = make([]protoimpl.MessageInfo, 8)
var file_store_v1_index_proto_goTypes = []any{
	(*Head)(nil),      // 0: store.v1.Head
	(*Segments)(nil),  // 1: store.v1.Segments
	(*Segment)(nil),   // 2: store.v1.Segment
	(*Entry)(nil),     // 3: store.v1.Entry
	(*Columns)(nil),   // 4: store.v1.Columns
	(*CodesHead)(nil), // 5: store.v1.CodesHead
	(*Blocks)(nil),    // 6: store.v1.Blocks
	(*Block)(nil),     // 7: store.v1.Block
}
var file_store_v1_index_proto_depIdxs = []int32{
	2, // 0: store.v1.Segments.segments:type_name -> store.v1.Segment
	2, // 1: store.v1.Segments.building:type_name -> store.v1.Segment
	7, // 2: store.v1.Blocks.blocks:type_name -> store.v1.Block
	3, // [3:3] is the sub-list for method output_type
	3, // [3:3] is the sub-list for method input_type
	3, // [3:3] is the sub-list for extension type_name
	3, // [3:3] is the sub-list for extension extendee
	0, // [0:3] is the sub-list for field type_name
}

func init() { file_store_v1_index_proto_init() }
func file_store_v1_index_proto_init() {
	if File_store_v1_index_proto != nil {
		return
	}
	type x struct{}
	out := protoimpl.TypeBuilder{
		File: protoimpl.DescBuilder{
			GoPackagePath: reflect.TypeOf(x{}).PkgPath(),
			RawDescriptor: unsafe.Slice(unsafe.StringData(file_store_v1_index_proto_rawDesc), len(file_store_v1_index_proto_rawDesc)),
			NumEnums:      0,
			NumMessages:   8,
			NumExtensions: 0,
			NumServices:   0,
		},
		GoTypes:           file_store_v1_index_proto_goTypes,
		DependencyIndexes: file_store_v1_index_proto_depIdxs,
		MessageInfos:      file_store_v1_index_proto_msgTypes,
	}.Build()
	File_store_v1_index_proto = out.File
	file_store_v1_index_proto_goTypes = nil
	file_store_v1_index_proto_depIdxs = nil
}
