#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The argument or result types of a database function differ from those that the
# module expects: no session is opened, and the log names the statement.  The
# server recovers when the types are correct again.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;

my $t = Test::Xet->new(workers => 1, log => 'info',
	allow => [ qr/xet: connecting to PostgreSQL failed/,
		qr/xet: statement "\w+": column \d+ has an unexpected type/,
		qr/xet: connection to PostgreSQL lost/,
		qr/database_unavailable/, qr/PostgreSQL rejected/ ]);

$t->run();

my $file = $t->upload(random_bytes(1, 20000));

for my $case (
	[ 'a value', 'hub_proven', qr/RETURNS bigint/, 'RETURNS integer',
		qr/statement "hub_proven": column 1 has an unexpected type/ ],
	[ 'a column', 'file_open', qr/first_offset bigint/,
		'first_offset integer',
		qr/statement "file_open\w*": column 3 has an unexpected type/ ],
	[ 'a column less', 'zt_get', qr/, attributes bytea/, '',
		qr/column "attributes" does not exist/ ],
	[ 'a parameter', 'hub_proven', qr/digests bytea\[\]/, 'digests text[]',
		qr/function xet\.hub_proven\(.*\) does not exist/ ])
{
	my ($title, $name, $was, $is, $log) = @$case;

	my $good = join("\n", $t->sql("SELECT pg_get_functiondef("
		. "'xet.$name'::regproc)"));
	my $bad = $good =~ s/$was/$is/r;

	isnt($bad, $good, "$title: another function");

	my $from = $t->log_size();

	replace($name, $bad);
	$t->pg_terminate();
	ok(wait_for(20, sub { $t->get('/api/health')->{status} == 503 }),
		"$title: no session");
	ok(wait_for(20, sub { $t->log($from) =~ $log }), "$title: why");
	is($t->get("/api/v1/reconstructions/$file->{hash}")->{status}, 503,
		"$title: no answer");

	replace($name, $good);
	ok(wait_for(20, sub { $t->get('/api/health')->{status} == 200 }),
		"$title: right again");
	is($t->get("/api/v1/reconstructions/$file->{hash}")->{status}, 200,
		"$title: answers again");
}

$t->done();

# PostgreSQL does not check the body, which may not match other result types.

sub replace {
	my ($name, $text) = @_;

	$t->sql("BEGIN; SET LOCAL check_function_bodies = off;"
		. " DROP FUNCTION xet.$name; $text; COMMIT");
}
