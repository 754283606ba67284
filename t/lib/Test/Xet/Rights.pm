package Test::Xet::Rights;

# Copyright (C) the ngx_http_xet_module authors

# Tests access rights: sends requests for every route and method, as every kind
# of caller, and compares the responses with t/rights/expect.def.
#
#     my $rights = Test::Xet::Rights->new($t, hub => 'hub',
#         api => { '/api' => 'repo', '/cas' => 'repo' });
#
#     $rights->run();
#
# Options:
#
#     hub      name of the matrix of the Hub, if there is a Hub
#     api      { location => name of its matrix }
#     cas      a location that accepts files for repos; default /cas
#     base     prefix of the Hub's paths; default ''
#     space    namespace of the private repo; default alice
#     owner    subject that owns the private repo; default alice
#     iss, aud claims that tokens need
#     public   EdDSA private key that signs the tokens
#     headers  headers of each request
#     port     port number in the configuration
#     maker    port of a server that creates the data, if the server under
#              test allows no caller to create data
#     keys     folder of the keys; by default that of the test
#     only     api: tests no routes of the Hub
#     makes    headers of the caller that creates the files of the API, if the
#              API has no repos
#     names    1: a header names the caller
#     brief    1: tests some callers, one version of each route, no HEAD
#     through  [ server, port ] that gets the requests; $t creates the data
#
# A row of the table gives several results of the test.  All callers get the
# response that the table states.  No response reveals anything about a thing
# to a caller without access to that thing.  Hidden and missing things give the
# same response.  A rejected request changes nothing.

use warnings;
use strict;

use parent -norequire, qw/ Test::Xet::Rights::Request /;
use parent qw/ Test::Xet::Rights::World /;

use Digest::SHA qw/ hmac_sha256_hex sha256_hex /;
use Test::More ();

use Test::Xet::HTTP;
use Test::Xet::Process qw/ module_table root /;
use Test::Xet::Rights::Request;
use Test::Xet::Rights::Table;
use Test::Xet::Rights::Token;
use Test::Xet::Rights::World;

my @methods = qw/ GET HEAD POST PUT DELETE PATCH /;

my $brief = qr/^(?:nobody|expired|wrong\.(?:key|aud|iss)|alg\.\w+|url\.key
	|owner\.(?:read|write|admin|hf)|bob\.(?:read|admin)
	|bound\.(?:read|write|admin)|api\.(?:read|admin)|given\.\w+
	|was\.(?:read|nobody|bound)|clear|liked|user\.\w+|root\.write)$/x;

my %letters = (401 => 'u', 403 => 'f', 404 => 'm', 405 => 'n', 409 => 'c');

sub new {
	my ($class, $t, %o) = @_;

	my $self = bless { t => $t, cas => '/cas', base => '',
		space => 'alice', owner => 'alice', fresh => 0, requests => 0,
		api => {}, %o }, $class;

	my %routes = (api => module_table('routes'),
		hub => module_table('hub'));

	$self->{table} = Test::Xet::Rights::Table->new(root()
		. '/t/rights/expect.def', %routes);
	$self->{tokens} = Test::Xet::Rights::Token->new(
		$o{keys} // $t->dir(),
		map { $_ => $o{$_} } grep { defined $o{$_} }
			qw/ iss aud public /);

	for my $kind (keys %routes) {
		for my $route (@{ $routes{$kind} }) {
			$self->{handlers}{"$kind $_ $route->{form}"}
				= $route->{handler}
				for @{ $route->{methods} };
		}
	}

	return $self;
}

sub handler {
	my ($self, $kind, $form, $method) = @_;

	return $self->{handlers}{"$kind $method $form"} // 'none';
}

sub run {
	my ($self) = @_;

	$self->made_by(sub { $self->make() });

	my $table = $self->{table};

	if (defined $self->{hub} && !$self->{only}) {
		$self->row_urls();
		$self->row('', $self->{hub}, $_) for @{ $table->routes('hub') };
	}

	for my $place (sort keys %{ $self->{api} }) {
		for my $route (@{ $table->routes('api') }) {
			my @versions = @{ $route->{versions} };

			splice(@versions, 0, -1) if $self->{brief};

			$self->row($place, $self->{api}{$place}, { %$route,
				version => $_ }) for @versions;
		}
	}

	$self->other_methods();
}

# --------------------------------------------------------------------------
# callers and things

# Replaces SPACE and OWNER by the namespace and owner of the configuration.

sub expand {
	my ($self, $text) = @_;

	return undef unless defined $text;

	return $text =~ s/OWNER_UC/uc($self->{owner})/er
		=~ s/OWNER/$self->{owner}/r =~ s/SPACE/$self->{space}/r;
}

# Returns the name of a caller; undef if the caller has no name.

sub who {
	my ($caller) = @_;

	return $caller->{sub} // (($caller->{header} // '') =~ /:(.*)/)[0];
}

# Returns the thing that S, O, A or N means for a caller.

sub thing {
	my ($self, $letter, $caller) = @_;

	return $self->{scenes}{ $caller->{scene} // 'secret' }
		if $letter eq 'S';

	return $letter eq 'O' ? $self->{scenes}{open}
		: $letter eq 'A' ? $self->{scenes}{api} : $self->{none};
}

# Returns the headers of a caller, which are the same for each request.  A
# caller marked "fresh" gets new ones, for data that was created just now.  In
# requests for buckets, a token for a repo becomes a token for a bucket.

sub headers {
	my ($self, $caller, $kind) = @_;

	$kind //= 'models';

	return $self->new_headers($caller, $kind) if $caller->{fresh};
	return $self->{sent}{$kind}{ $caller->{name} }
		//= $self->new_headers($caller, $kind);
}

sub new_headers {
	my ($self, $caller, $kind) = @_;

	my %c = map { $_ => $self->expand($caller->{$_}) } keys %$caller;
	my $store = $kind eq 'models' ? 'store' : 'bucket_store';
	my $scenes = $self->{scenes};
	my $scene = $c{scene} // 'secret';
	my %repos = (S => $self->{bound}{$kind}{$scene}
			// $scenes->{$scene}{$store},
		api => $scenes->{api}{store},
		other => $scenes->{other}{$store});

	$c{repo} = $repos{ $c{repo} } // $c{repo} if defined $c{repo};
	$c{token} = $self->{given}{$kind}{ $c{name} } if $c{given};

	my $value = $self->{tokens}->header(%c);

	return { %{ $self->{headers} || {} },
		defined $value ? (Authorization => $value) : (),
		($c{as} // '') eq 'page'
			? (Origin => 'http://elsewhere.example') : (),
		$c{clear} ? ('X-Forwarded-Proto' => 'http') : (),
		defined $c{header} ? split(/:/, $c{header}) : () };
}

# Returns the callers that have a row in a matrix and fit this configuration.

sub callers {
	my ($self, $matrix) = @_;

	return grep {
		$self->{table}->comes($matrix, $_->{name})
			&& (!$_->{given}
				|| $self->{given}{models}{ $_->{name} })
			&& (!$_->{scene} || $self->{scenes}{ $_->{scene} })
			&& (($_->{alg} // '') ne 'public' || $self->{public})
			&& (!$_->{clear} || $self->{headers})
			&& (!defined($_->{aud} // $_->{iss}) || $self->{aud})
			&& (!$self->{brief} || $_->{name} =~ $brief)
	} @{ $self->{table}->callers() };
}

# --------------------------------------------------------------------------
# requests

# Returns a connection for n requests; nginx closes it after 1,000.

sub connection {
	my ($self, $n) = @_;

	my ($t, $port) = $self->{through} ? @{ $self->{through} }
		: ($self->{t}, $self->{making} // $self->{port});

	if ($self->{requests} + $n > 900 || !$self->{connection}) {
		$self->{connection}->close() if $self->{connection};
		$self->{connection} = $t->connect(port => $port,
			timeout => 30);
		$self->{requests} = 0;
	}

	$self->{requests} += $n;

	return $self->{connection};
}

# Runs code whose requests go to the port of the option "maker", if it is set.

sub made_by {
	my ($self, $code) = @_;

	return $code->() if !$self->{maker} || $self->{making};

	local $self->{making} = $self->{maker};
	local $self->{connection};
	local $self->{requests} = 0;

	return $code->();
}

sub http {
	my ($self, $method, $uri, $headers, $body) = @_;

	for my $try (1 .. 2) {
		my $r = $self->connection(1)->exchange($method, $uri, $headers,
			defined $body ? \$body : undef);
		my ($last) = $r->header_value('Connection');

		delete $self->{connection} if $r->{error} || $r->{send_error}
			|| $self->{connection}{eof}
			|| lc($last // '') eq 'close';

		return $r if $r->{status} || $try == 2;
	}
}

sub letter {
	my ($self, $r, $want) = @_;

	my $letter = $r->{status} =~ /^2/ ? 'o'
		: $letters{ $r->{status} } // "($r->{status})";

	# the list contains the private repo

	return $letter eq 'o' && $want eq 's' && ($r->{method} eq 'HEAD'
		|| $r->{body} =~ /zsecretz/) ? 's' : $letter;
}

# --------------------------------------------------------------------------
# testing a row of the table

sub row {
	my ($self, $place, $matrix, $route) = @_;

	my $column = $route->{column};

	return if $column eq 'url';

	for my $method (grep { $_ ne 'HEAD' || !$self->{brief} }
		@{ $route->{methods} })
	{
		my $name = join(' ', $method, "$place/"
			. ($route->{version} // '') . "/$route->{form}",
			%{ $route->{more} });

		$self->method($place, $matrix, $route, $method,
			$name =~ s!//!/!gr);
	}
}

sub method {
	my ($self, $place, $matrix, $route, $method, $name) = @_;

	my (@bad, @told, @unlike);
	my $before = $self->state();

	# rejected requests first, then allowed requests

	for my $allowed (0, 1) {
		my @jobs = $self->jobs($matrix, $route, $allowed);

		$self->ask($place, $route, $method, @jobs);

		for my $job (@jobs) {
			push @bad, $self->wrong($route, $job);
			push @told, $self->told($matrix, $job->{caller},
				$job->{thing}, $job->{r});
		}

		push @unlike, $self->unlike(@jobs);

		$self->unchanged($name, $before)
			if !$allowed && $method !~ /GET|HEAD/;
	}

	verdict("$name: all are told what the table says", @bad);
	verdict("$name: nobody is told what is not for them", @told);
	verdict("$name: hidden and missing are alike", @unlike);
}

# Returns the pairs of callers and things to request.  Callers that always get
# 401 or 403 request only the first thing and the last one, which is missing.

sub jobs {
	my ($self, $matrix, $route, $allowed) = @_;

	my $table = $self->{table};
	my @things = split(//, $table->things($route->{column}) || '-');
	my @jobs;

	for my $caller ($self->callers($matrix)) {
		my $cell = $route->{more}{ $caller->{name} }
			// $table->cell($matrix, $caller->{name},
				$route->{column});
		my $all = $cell !~ /^(?:u+|f+)$/;

		for my $i (0 .. $#things) {
			my $want = substr($cell, $i, 1);

			push @jobs, { caller => $caller, want => $want,
				thing => $things[$i] }
				if ($want =~ /[os]/) == $allowed
					&& ($all || $i == 0 || $i == $#things);
		}
	}

	return @jobs;
}

sub wrong {
	my ($self, $route, $job) = @_;

	my $want = $route->{more}{ $job->{want} } // $job->{want};

	$job->{is} = $self->letter($job->{r}, $want);

	return $job->{is} eq $want ? () : "$job->{caller}{name} $job->{thing}: "
		. "$job->{is}, not $want: "
		. substr($job->{r}{body}, 0, 90) =~ s/[^ -~]/?/gr;
}

sub unchanged {
	my ($self, $name, $before) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	Test::More::is($self->state(), $before,
		"$name: who is refused changes nothing")
		or $self->repair($name =~ m!/repo !);
}

sub verdict {
	my ($name, @faults) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	Test::More::ok(!@faults, $name)
		or Test::More::diag(join("\n", @faults));
}

# Sends the requests of jobs concurrently: the data that they need is created
# before the first one is sent.

sub ask {
	my ($self, $place, $route, $method, @jobs) = @_;

	my $kind = ($route->{form} // '') =~ /buckets/ ? 'buckets' : 'models';

	for my $job (@jobs) {
		my ($m, $uri, $headers, $body) = $self->request($place, $route,
			$method, $job->{caller}, $job->{thing}, $job->{want});
		my %headers = (%{ $self->headers($job->{caller}, $kind) },
			%$headers);

		if (defined $body) {
			$headers{'Content-Length'} = length($body);

		} else {
			delete $headers{'Content-Type'};
		}

		$job->{request} = [ $m, $uri, \%headers, $body ];
	}

	while (my @some = splice(@jobs, 0, 30)) {
		$self->pipeline(@some);
	}
}

sub pipeline {
	my ($self, @jobs) = @_;

	my $c = $self->connection(scalar @jobs);

	for my $job (@jobs) {
		my ($method, $uri, $headers, $body) = @{ $job->{request} };

		$c->start($method, $uri, $headers);
		$c->send_body($body) if defined $body;
	}

	for my $job (@jobs) {
		my ($method, $uri, $headers, $body) = @{ $job->{request} };

		$job->{r} = $c ? $c->response($method) : undef;

		# nginx closes a connection after some of its errors

		if (!$job->{r} || !$job->{r}{status}) {
			$c = delete $self->{connection} if $c;
			undef $c;
			$job->{r} = $self->http($method, $uri, $headers, $body);
		}

		$job->{r}{method} = $method;
		$job->{r}{asked} = "$uri " . ($body // '');
	}
}

# Returns a digest of the state that no rejected request may change: everything
# with a name or an owner.

sub state {
	my ($self) = @_;

	$self->{sql} //= $self->{t}->pg_session();

	return join(' ', $self->{sql}->run(<<'EOQ'));
SELECT md5(string_agg(t, ',' ORDER BY t)) FROM (
    SELECT h::text AS t FROM xet.hub_repos h
    UNION ALL SELECT c::text FROM xet.hub_commits c
    UNION ALL SELECT f::text FROM xet.hub_refs f
    UNION ALL SELECT r.id || r.name || r.public FROM xet.repos r
    UNION ALL SELECT f.repo_id || ' ' || f.file_id FROM xet.repo_files f
    UNION ALL SELECT encode(x.hash, 'hex') FROM xet.xorbs x
    UNION ALL SELECT encode(f.hash, 'hex') FROM xet.files f
    ) s
EOQ
}

# --------------------------------------------------------------------------
# what a response reveals

# Returns the private things that a caller may see according to a matrix.

sub sees {
	my ($self, $matrix, $caller) = @_;

	my $table = $self->{table};
	my $cell = $table->cell($matrix, $caller->{name}, 'look')
		// $table->cell($matrix, $caller->{name}, 'file') // '';
	my @all = keys %{ $self->{scenes} };
	my %sees;

	# if this configuration does not distinguish callers

	return { map { $_ => 1 } @all } if $cell =~ /^oo/
		&& ($table->cell($matrix, 'nobody', 'look')
			// $table->cell($matrix, 'nobody', 'file') // '')
				eq $cell;

	$sees{api} = $cell =~ /^.o..$/;
	$sees{other} = ($caller->{repo} // '') eq 'other'
		|| (who($caller) // '') =~ /^(?:bob|root)$/
		|| ($caller->{by} // '') =~ /^bob/;

	# the data that the caller has sent; with a token for one repo, only the
	# data of that repo

	if ((who($caller) // $caller->{by} // '') =~ /^owner|^OWNER$/
		|| $cell =~ /^o/ && !$caller->{repo} && !$caller->{given})
	{
		$sees{$_} = 1 for qw/ secret turned again /;

	} elsif ($cell =~ /^o/) {
		$sees{ $caller->{scene} // 'secret' } = 1;
	}

	return \%sees;
}

sub told {
	my ($self, $matrix, $caller, $thing, $r) = @_;

	my $sees = $self->{sees}{$matrix}{ $caller->{name} }
		//= $self->sees($matrix, $caller);
	my @told;

	for my $name (grep { $_ ne 'open' && !$sees->{$_} }
		sort keys %{ $self->{scenes} })
	{
		my $marks = $self->marks_of($name);

		while ($r->{raw} =~ /$marks/g) {
			my $mark = $1;

			next if index($r->{asked}, $mark) >= 0;

			push @told, "$caller->{name} $thing: $r->{status}: of "
				. "$name: " . $mark =~ s/[^ -~]/?/gr;
			last;
		}
	}

	return @told;
}

sub marks_of {
	my ($self, $name) = @_;

	return $self->{marks}{$name} //= do {
		my $all = join('|', Test::Xet::Rights::World::marks(
			$self->{scenes}{$name}));

		qr/($all)/;
	};
}

# Returns the differences between the responses for a hidden and for a missing
# thing, except for the names of the things.

sub unlike {
	my ($self, @jobs) = @_;

	my (%none, @unlike);

	$none{ $_->{caller}{name} } = $_ for grep { $_->{thing} eq 'N' } @jobs;

	for my $job (grep { $_->{want} eq 'm' && $_->{thing} ne 'N' } @jobs) {
		my $none = $none{ $job->{caller}{name} };

		# a different status is already reported by wrong()

		next if !$none || $job->{is} ne $none->{is};

		my ($a, $b) = map { $self->plain($_->{r},
			$self->thing($_->{thing}, $_->{caller})) } $job, $none;

		push @unlike, "$job->{caller}{name} $job->{thing}:\n$a\n"
			. "none:\n$b" if $a ne $b;
	}

	return @unlike;
}

sub plain {
	my ($self, $r, $s) = @_;

	my $text = join("\n", $r->{status}, (map {
		my $name = $_;

		$name =~ /^(?:date|x-request-id|etag|content-length)$/
			? $name : map { "$name: $_" } @{ $r->{headers}{$name} }
	} sort keys %{ $r->{headers} }), $r->{body});

	$text =~ s/\Q$_\E/%/g for grep { defined && length }
		@$s{qw/ id name hash chunk xorb zt_hash sha256 /};

	return $text;
}

# --------------------------------------------------------------------------
# methods and URLs that no row of the table covers

# Checks that the other methods of a path return nothing and change nothing.

sub other_methods {
	my ($self) = @_;

	my (%has, %route);

	for my $route (@{ $self->{table}->routes('hub') }) {
		next if !defined $self->{hub} || $self->{only}
			|| $route->{column} eq 'url';

		my $path = Test::Xet::Rights::Request::hub_path($route->{form},
			$self->{scenes}{secret}, {});

		$has{$path}{$_} = 1 for @{ $route->{methods} };
	}

	for my $place (sort keys %{ $self->{api} }) {
		for my $route (@{ $self->{table}->routes('api') }) {
			for my $version (@{ $route->{versions} }) {
				my $path = "$place/$version/"
					. Test::Xet::Rights::Request::api_path(
						$route,
						$self->{scenes}{secret}, {});

				$has{ $path =~ s!//!/!r }{$_} = 1
					for @{ $route->{methods} };
			}
		}
	}

	my $before = $self->state();
	my @bad;

	for my $path (sort keys %has) {
		for my $method (grep { !$has{$path}{$_} } @methods) {
			push @bad, $self->other_method($path, $method);
		}
	}

	verdict('other methods: no effect, nothing revealed', @bad);
	Test::More::is($self->state(), $before,
		'other methods: nothing is changed');
}

sub other_method {
	my ($self, $path, $method) = @_;

	my @bad;

	for my $caller (grep { $_->{name} =~ /^(?:nobody|bob\.admin)$/ }
		@{ $self->{table}->callers() })
	{
		my $r = $self->http($method, $path, $self->headers($caller),
			$method =~ /^P/ ? '{}' : undef);

		$r->{asked} = $path;

		push @bad, "$caller->{name}: $method $path: $r->{status}"
			unless $r->{status} =~ /^4/ || $method eq 'HEAD'
				&& $r->{status} eq '405';
		push @bad, $self->told($self->{hub}
			// (values %{ $self->{api} })[0], $caller, $path, $r);
	}

	return @bad;
}

# Tests LFS URLs: each is valid for one object of one repo, for download or for
# upload, and for a limited time.

sub row_urls {
	my ($self) = @_;

	my $urls = $self->{url} or return;
	my $secret = $urls->{secret} or return;
	my (@bad, @told);

	my %get = (good => [ $secret->{download}, 'o' ],
		'of another object' => [ $secret->{download}
			=~ s!/lfs/\w+!/lfs/$self->{scenes}{turned}{sha256}!r,
			'f' ],
		'of another repo' => [ $secret->{download} =~
			s!\br=[^&]+!r=$self->{scenes}{other}{store}!r, 'f' ],
		'to put' => [ $secret->{upload}, 'f' ],
		'later' => [ $secret->{download} =~ s!\be=(\d+)!'e=' . ($1 + 1)
			!er, 'f' ],
		'cut' => [ substr($secret->{download}, 0, -1), 'f' ],
		'unsigned' => [ $secret->{download} =~ s!&s=.*!!r, 'f' ],
		(map { ("by $_.key" => [ $self->forged($_, 0), 'f' ]) }
			qw/ url token dedup /),
		'no longer public' => [ $urls->{turned}{download}, 'm' ],
		'made again' => [ $urls->{again}{download}, 'm' ]);

	for my $name (sort keys %get) {
		my ($uri, $want) = @{ $get{$name} };

		for my $method (qw/ GET HEAD /) {
			push @bad, $self->url($method, $name, $uri, $want);
		}
	}

	my %put = (good => [ $secret->{upload}, 'o' ],
		'to get' => [ $secret->{download}, 'f' ],
		'of another repo' => [ $secret->{upload} =~
			s!\br=[^&]+!r=$self->{scenes}{other}{store}!r, 'f' ],
		'unsigned' => [ $secret->{upload} =~ s!&s=.*!!r, 'f' ],
		(map { ("by $_.key" => [ $self->forged($_, 1), 'f' ]) }
			qw/ url token dedup /),
		'no longer public' => [ $urls->{turned}{upload}, 'm' ],
		'made again' => [ $urls->{again}{upload}, 'm' ]);

	# a read-only server accepts no upload

	my $closed = ($self->{table}->cell($self->{hub}, 'owner.admin',
		'change') // '') =~ /^f/;

	for my $name (sort keys %put) {
		my ($uri, $want) = @{ $put{$name} };

		push @bad, $self->url('PUT', $name, $uri,
			$closed ? 'f' : $want);
	}

	verdict('URLs of LFS: each only for its purpose', @bad);
}

# Returns a URL signed as the server does, but with a key for another purpose.

sub forged {
	my ($self, $key, $writes) = @_;

	my $s = $self->{scenes}{secret};
	my $expires = time() + 600;
	my $oid = $writes ? sha256_hex('zlatez') : $s->{sha256};
	my $text = "xet hub lfs 1\0" . pack('H*C Q>', $oid, $writes, $expires)
		. $s->{store};

	return "$self->{base}/api/lfs/$oid?r=$s->{store}&e=$expires&s="
		. hmac_sha256_hex($text, pack('H*',
			$self->{tokens}{secrets}{$key}));
}

sub url {
	my ($self, $method, $name, $uri, $want) = @_;

	my $r = $self->http($method, $uri, { %{ $self->{headers} || {} } },
		$method eq 'PUT' ? 'zlatez' : undef);

	$r->{method} = $method;

	my $is = $self->letter($r, $want);

	return $is eq $want ? () : "$method $name: $is, not $want: "
		. substr($r->{body}, 0, 90);
}

1;
