package conversation

import (
	"strconv"
	"strings"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/kernel"
)

// The sources of the conversation's decisions.
const (
	SourceRecord   kernel.Source = "conversation-record"
	SourceBudget   kernel.Source = "conversation-budget"
	SourceAdmit    kernel.Source = "conversation-admission"
	SourceSettings kernel.Source = "conversation-settings"
	SourceSharing  kernel.Source = "conversation-sharing"
)

// RecordedFactSources are the sources of all decisions in a conversation's log,
// the loop's included, that are bookkeeping: none is a choice among
// alternatives, and none may be offered to learning as one (C-6.3, C-6.4).
func RecordedFactSources() []kernel.Source {
	return []kernel.Source{SourceRecord, SourceBudget, SourceAdmit, SourceSettings, SourceSharing, agent.SourceCheckpoint}
}

// Decision ids (C-16); n is the message ordinal. They are frozen: logs hold
// them (C-16.7). The loop's own ids begin with loopID and a '#' (C-16.6).
const (
	idSettings = "conv#settings"
	idClosed   = "conv#closed"

	loopPrefix  = "conv#o"
	suffixUser  = ":user"
	suffixReply = ":reply"
)

func loopID(n int) string    { return loopPrefix + strconv.Itoa(n) }
func idAdmit(n int) string   { return loopID(n) + ":admit" }
func idUser(n int) string    { return loopID(n) + suffixUser }
func idReply(n int) string   { return loopID(n) + suffixReply }
func idDropped(n int) string { return loopID(n) + ":dropped" }

func idMember(n int) string  { return loopID(n) + ":member" }
func idVisible(n int) string { return loopID(n) + ":visible" }
func idClasses(n int) string { return loopID(n) + ":classes" }
func idTurn(n int) string    { return loopID(n) + ":turn" } // the step

func idFit(n int) string        { return "conv#fit:" + strconv.Itoa(n) }
func idSummarize(n int) string  { return loopID(n) + ":summarize" } // the step
func idSummarized(n int) string { return idSummarize(n) + ":outcome" }
func idSummary(n int) string    { return loopID(n) + ":summary" }

// recordRole returns whose record stands under the id of a decision, and false
// if no record does.
func recordRole(id string) (Role, bool) {
	rest, ok := strings.CutPrefix(id, loopPrefix)
	if !ok {
		return "", false
	}
	ordinal, role := rest, Role("")
	if n, ok := strings.CutSuffix(rest, suffixUser); ok {
		ordinal, role = n, RoleUser
	} else if n, ok := strings.CutSuffix(rest, suffixReply); ok {
		ordinal, role = n, RoleAssistant
	} else {
		return "", false
	}
	n, err := strconv.Atoi(ordinal)
	return role, err == nil && n > 0 && strconv.Itoa(n) == ordinal
}
