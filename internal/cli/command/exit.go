package command

import (
	"slices"
)

// Code is the program's exit status.
type Code int

// The exit statuses. [Codes] explains each.
const (
	OK          Code = 0
	Failed      Code = 1
	Usage       Code = 2
	NotFound    Code = 3
	Auth        Code = 4
	Refused     Code = 5
	Partial     Code = 6
	Unknown     Code = 7
	Pending     Code = 8
	Unverified  Code = 9
	Store       Code = 10
	Unreachable Code = 11
	Interrupted Code = 130
	Terminated  Code = 143
)

// CodeInfo is one line of the table of exit statuses.
type CodeInfo struct {
	Code    Code
	Word    string // `code` of an error in JSON
	Meaning string
}

// Codes returns the table of exit statuses, which help and README show.
func Codes() []CodeInfo {
	return []CodeInfo{
		{OK, "ok", "done; for bulk: every row accepted or already there"},
		{Failed, "failed", "unexpected error, address in use"},
		{Usage, "usage", "wrong flags, arguments, configuration or input, or no data rows (--allow-empty makes that 0); nothing was sent"},
		{NotFound, "not_found", "not found: tracking, run or event"},
		{Auth, "auth", "API key missing or refused"},
		{Refused, "refused", "refused by the service; for bulk: every row rejected, or the run stopped on an error that is not about rows"},
		{Partial, "partial", "some rows, REFs or targets failed, were skipped or differ; the others are done"},
		{Unknown, "unknown", "sent, but no response or an unexpected one; re-run the same command"},
		{Pending, "pending", "timed out while processing, or before the condition was met"},
		{Unverified, "unverified", "a signature did not verify, or no signature scheme was found"},
		{Store, "store", "problem with the store or a disk (unreachable, locked, too new, full)"},
		{Unreachable, "unreachable", "no connection; repeating is safe"},
		{Interrupted, "interrupted", "SIGINT, after state was saved (the first lets running requests finish, the second stops at once)"},
		{Terminated, "interrupted", "SIGTERM, in the same way"},
	}
}

// Precedence is the order in which causes win where several apply.
func Precedence() []Code {
	return []Code{Store, Interrupted, Terminated, Auth, Unknown, Unreachable, Partial, Refused, Pending}
}

// Worst returns the code that wins, OK if there is no other.
func Worst(cs ...Code) Code {
	for _, p := range Precedence() {
		if slices.Contains(cs, p) {
			return p
		}
	}
	for _, c := range cs {
		if c != OK {
			return c
		}
	}
	return OK
}

// CodeOf returns the exit status with that word.
func CodeOf(word string) Code {
	for _, row := range Codes() {
		if row.Word == word {
			return row.Code
		}
	}
	return Failed
}

// Word returns the word for the status, which errors in JSON have as their `code`.
func (c Code) Word() string {
	for _, row := range Codes() {
		if row.Code == c {
			return row.Word
		}
	}
	return "failed"
}
