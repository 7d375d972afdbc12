// Package console serves the pages on which people see what the server knows.
//
// They are files: a program for browsers that is made of src by .ci/console/build.py, and
// gets all that it shows from the calls over HTTP (package rest). The files need no
// credential and hold no data. A server with credentials has the page ask for a token, which
// it trades for a cookie (package web).
package console
