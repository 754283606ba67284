#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The terms of a large file are fetched in batches.  PostgreSQL reads each row
# once or twice, whatever its table statistics are, and does not read the
# remaining rows of the file for each batch.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Files;
use Test::Xet::Process qw/ wait_for /;

my $t = Test::Xet->new(workers => 1);

$t->run();

my $rows = 1200;
my $file = insert_file($t, 1, 256 * $rows, 1000);
my $small = insert_file($t, 2, 3, 1);

is($t->sql('SELECT count(*) FROM xet.terms'), $rows + 1, 'rows of terms');

# Returns the number of rows of terms that were read; sessions report their
# reads when they end.

sub rows_read {
	return $t->sql('SELECT sum(coalesce(idx_tup_fetch, 0)'
		. ' + coalesce(seq_tup_read, 0)) FROM pg_stat_user_tables'
		. " WHERE relname ~ '^terms'");
}

sub asked {
	my ($name, $uri, $range, $least, $most) = @_;

	my $before = rows_read();
	my $r = $t->http('HEAD', $uri, $range ? { Range => $range } : {},
		undef, timeout => 60);

	is($r->{status}, 200, "$name: status");

	$t->reload();

	my $n;

	ok(wait_for(20, sub {
		$n = rows_read() - $before;
		$n >= $least
	}), "$name: counted") or diag("$n rows");

	cmp_ok($n, '<=', $most, "$name: rows");
}

my $one = "/api/v2/reconstructions/$file->{hash}";
my $batch = "/api/v1/reconstructions?file_id=$small->{hash}"
	. "&file_id=$file->{hash}";
my $middle = 1000 * 256 * $rows / 2;

for my $state ('as it was made', 'analyzed', 'analyzed empty') {

	if ($state eq 'analyzed') {
		$t->sql('ANALYZE');

	} elsif ($state eq 'analyzed empty') {
		$t->sql("DELETE FROM pg_statistic WHERE"
			. " starelid::regclass::text ~ '^xet.terms'; UPDATE"
			. " pg_class SET reltuples = 0, relpages = 1"
			. " WHERE relname ~ '^terms'"
			. " AND relkind IN ('r', 'p')");
	}

	$t->reload();

	asked("$state: one", $one, undef, $rows, 3 * $rows);
	asked("$state: batch", $batch, undef, $rows, 3 * $rows);
	asked("$state: a range", $one,
		"bytes=$middle-" . ($middle + 999), 1, 20);
}

# Checks that a response asks for a retry if the terms of the file are replaced,
# or the file is deleted, after the first batch is read.

sub replaced {
	my ($name, $function, $arguments, $real) = @_;

	my $old = $t->sql('SELECT pg_get_functiondef('
		. "'xet.$function'::regproc)");
	my $body = 'AS $function$' . "\n$real" . '$function$';

	$t->sql($old =~ s/\b$function\b(?!\$)/${function}_real/gr);
	$t->sql($old =~ s/AS \$function\$.*/$body/sr);

	for my $uri (@$arguments) {
		my $r = $t->http('GET', $uri);

		is($r->{status}, 503, "$name: $uri")
			or diag(substr($r->summary(), 0, 300));
		like($r->{body}, qr/retry/, "$name: reason");
		ok($r->header_value('Retry-After'), "$name: Retry-After");
	}

	$t->sql("$old; DROP FUNCTION xet.${function}_real");
}

replaced('other terms', 'file_terms', [ $one ], <<'EOF');
    SELECT size, first_offset - CASE WHEN first_byte > 0 THEN 1 ELSE 0 END,
           packed
      FROM xet.file_terms_real(file, first_byte, last_byte, any_repo, repo)
EOF

replaced('other terms', 'files_terms', [ $batch ], <<'EOF');
    SELECT n, size, first_offset - CASE WHEN first_byte > 0 THEN 1 ELSE 0 END,
           packed
      FROM xet.files_terms_real(files, first_file, first_byte, any_repo,
                                repo)
EOF

replaced('taken away', 'files_terms', [ $batch ], <<'EOF');
    SELECT n, size, first_offset, packed
      FROM xet.files_terms_real(files, first_file, first_byte, any_repo,
                                repo)
     WHERE first_byte = 0
EOF

is($t->http('HEAD', $_, {}, undef, timeout => 60)->{status}, 200, 'as before')
	for $one, $batch;

$t->done();
