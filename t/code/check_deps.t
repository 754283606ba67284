#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# "make check" refuses changes that break the layers ("floors") of the source:
# a cycle, an include of a higher floor, or the header of a wing (a folder of
# src/http) included by the header that all files include.  It also refuses an
# include of another wing's private header, and the use of libpq outside of the
# wing "pg".

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet::Process qw/ root run_command slurp spew /;

use File::Temp qw/ tempdir /;

my $dir = tempdir(CLEANUP => 1);

run_command([ 'cp', '-r', root() . '/src', root() . '/.ci', $dir ]);

sub check {
	local $ENV{XET_BUILD} = "$dir/nothing";

	return run_command([ 'sh', "$dir/.ci/check-deps" ]);
}

my ($status, $out) = check();

is($status, 0, 'unchanged tree: accepted') or diag($out);
is($out, "dependencies: ok\n", 'unchanged tree: no error');

my $http = 'src/http';

# In each case: a file, the line that is added to it, and the expected error.

for ([ 'src/core/xorb/xet_xorb.h', '#include "xet_xorb_chunks.h"',
		qr/a circle of headers:/ ],
	[ 'src/core/base/xet_base.h', '#include "xet_hash.h"',
		qr/an arrow up.*core.base.xet_base includes .*xet_hash/s ],
	[ "$http/store/ngx_http_xet_store.c",
		'#include "ngx_http_xet_upload.h"',
		qr/an arrow up.*xet_store includes .*xet_upload/s ],
	[ "$http/upload/ngx_http_xet_xorb_commit.c",
		'#include "ngx_http_xet_download.h"',
		qr/to a neighbour:.*xet_xorb_commit includes .*xet_download/s ],
	[ "$http/upload/ngx_http_xet_xorb_commit.c",
		'#include "ngx_http_xet_pg_session.h"',
		qr/private to its wing:\n.*_commit includes .*pg_session/ ],
	[ "$http/upload/ngx_http_xet_body_ring.c",
		"void\nngx_http_xet_x(void)\n{\n"
		. "    (void) ngx_http_xet_body_received(NULL);\n}\n",
		qr/a circle of files that call each other:.*body_ring/s ],
	[ "$http/pg/ngx_http_xet_pg.c", '#include "ngx_http_xet_query.h"',
		qr/an arrow up.*xet_pg includes .*xet_query/s ],
	[ "$http/base/ngx_http_xet.h", '#include "ngx_http_xet_store.h"',
		qr/ngx_http_xet\.h includes a wing:/ ],
	[ "$http/query/ngx_http_xet_query_file.c", '#include <libpq-fe.h>',
		qr/libpq is included outside of pg:/ ],
	[ "$http/routes/ngx_http_xet_file.c", 'int n = PQntuples(res);',
		qr/libpq is called outside of pg:/ ],
	[ "$http/routes/ngx_http_xet_file.c",
		'ngx_http_xet_pg_pools_send(0, 0, 0, 0, 0, 0);',
		qr/statements are sent or read outside of query:/ ],
	[ "$http/upload/ngx_http_xet_xorb_commit.c", 'r->main->blocked++;',
		qr/blocked is touched outside/ ],
	[ 'src/core/xorb/xet_xorb.h', '#include <ngx_core.h>',
		qr/the core, or s3, includes nginx or libpq:/ ],
	[ 'src/core/base/xet_buf.c', '#include <lz4frame.h>',
		qr/the base of the core uses more than the C library:/ ],
	[ 'src/cli/transfer/xet_cli_http.c', '#include "xet_cli_admin.h"',
		qr/an arrow up.*xet_cli_http includes .*xet_cli_admin/s ],
	[ 'src/cli/admin/xet_cli_repo.c', 'PQfinish(conn);',
		qr/libpq is called outside of pg:/ ])
{
	my ($file, $line, $says) = @$_;

	my $text = slurp("$dir/$file");

	spew("$dir/$file", "$text\n$line\n");
	($status, $out) = check();
	spew("$dir/$file", $text);

	isnt($status, 0, "refused: $line in $file");
	like($out, $says, 'with the reason');
}

is((check())[0], 0, 'restored tree: accepted');

done_testing();
