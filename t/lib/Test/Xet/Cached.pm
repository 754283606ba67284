package Test::Xet::Cached;

# Copyright (C) the ngx_http_xet_module authors

# Two machines with a cache in shared memory, for the tests of such caches.

use warnings;
use strict;

use parent qw/ Exporter /;

use Test::Xet;
use Test::Xet::Token;

our @EXPORT = qw/ two_machines /;

# Starts two servers with the same store and database.  $cache is the directive
# of the cache without "valid": 1h on the first machine, 3s on the second one.
# The servers have the locations of Test::Xet::Token::beside(), /metrics, and
# $locations.

sub two_machines {
	my ($cache, $locations) = @_;

	my %conf = (workers => 2, log => 'info', Test::Xet::Token::beside());

	$conf{locations} .= <<'EOF' . ($locations // '');

        location /metrics {
            xet_metrics;
        }
EOF

	my @machines;

	for my $valid (qw/ 1h 3s /) {
		my $t = Test::Xet->new(%conf,
			http => "$conf{http}\n    $cache valid=$valid;",
			@machines ? (beside => $machines[0]) : ());

		$t->token_key();
		$t->run();

		push @machines, $t;
	}

	return @machines;
}

1;
