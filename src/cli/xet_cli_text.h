
/*
 * Texts of others: names of files, answers of servers, what a database has.
 *
 * Whatever of them is shown goes through here.  Characters that a terminal
 * obeys (controls of ASCII and of Unicode), that turn the direction of
 * writing or break a line, and bytes that are no UTF-8, are shown as \xNN a
 * byte, and so is the backslash; in JSON, where there are only characters,
 * as \uNNNN.  All others stay as they are.
 */

#ifndef _XET_CLI_TEXT_H_INCLUDED_
#define _XET_CLI_TEXT_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>
#include <stdio.h>


/*
 * As much as fits, whole characters and escapes only, and a zero byte; how
 * many bytes of the text these were.
 */
size_t xet_cli_text_escape(char *out, size_t size, const char *text,
    size_t len);

void xet_cli_text_write(FILE *out, const char *text, size_t len);

/* A string; "-" for NULL. */
void xet_cli_text_print(FILE *out, const char *text);

/* Text that is JSON already. */
void xet_cli_text_json(FILE *out, const char *text, size_t len);

/* Whether all of it is UTF-8. */
int xet_cli_text_valid(const char *text, size_t len);


#endif /* _XET_CLI_TEXT_H_INCLUDED_ */
