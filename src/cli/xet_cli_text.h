
/*
 * Texts of others: names of files, answers of servers, what a database has.
 *
 * All texts of others are printed by these functions.  Characters that a
 * terminal obeys (controls of ASCII and of Unicode), that turn the direction
 * of writing or break a line, bytes that are no UTF-8, and the backslash are
 * printed as \xNN for each byte.  In JSON such characters are printed as
 * \uNNNN, a byte that is no UTF-8 as \ufffd, and a backslash belongs to the
 * syntax.  All other characters are printed as they are.
 */

#ifndef _XET_CLI_TEXT_H_INCLUDED_
#define _XET_CLI_TEXT_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>
#include <stdio.h>


/*
 * Writes as much of a text as fits into size bytes, in whole characters and
 * escapes, and a zero byte.  Returns how many bytes of the text were taken.
 */
size_t xet_cli_text_escape(char *out, size_t size, const char *text,
    size_t len);

/* Print a text, escaped; a string, "-" for NULL. */
void xet_cli_text_write(FILE *out, const char *text, size_t len);
void xet_cli_text_print(FILE *out, const char *text);

/* Prints a text that is JSON already, escaped. */
void xet_cli_text_json(FILE *out, const char *text, size_t len);

/* Whether all of a text is UTF-8. */
int xet_cli_text_valid(const char *text, size_t len);


#endif /* _XET_CLI_TEXT_H_INCLUDED_ */
