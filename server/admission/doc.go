// Package admission counts what a request holds before it is decoded. An item of
// two bytes on the wire takes a hundred or more in memory, so a request within the
// limit of bytes can still be too much.
//
// A Table states how many items each repeated field and map may have, and how
// many values each field of JSON. A Counter walks over the encoded message and
// returns the first excess; it decodes nothing and allocates nothing. Bytes that can't
// be read are left to the decoder, which reports them.
package admission
