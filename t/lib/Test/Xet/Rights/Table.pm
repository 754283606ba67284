package Test::Xet::Rights::Table;

# Copyright (C) the ngx_http_xet_module authors

# Reads the table of expectations, t/rights/expect.def; the comment at its top
# describes the format.  xet_tables prints the other two tables, which list the
# routes of the API and of the Hub.
#
#     my $table = Test::Xet::Rights::Table->new($file, api => $routes,
#         hub => $hub);
#
#     $table->routes('hub');       [ { form, versions, methods, column, more } ]
#     $table->callers();           [ { name, ... } ], in their order
#     $table->things('look');      'SON'
#     $table->cell('hub', 'bob.read', 'look');    'mom'
#     $table->faults();
#
# faults() returns one line for each entry that is malformed, or missing from
# the table or from the routes.

use warnings;
use strict;

sub new {
	my ($class, $file, %routes) = @_;

	my $self = bless {
		file => $file, callers => [], columns => {}, lines => {},
		matrices => {}, order => [], faults => []
	}, $class;

	open(my $in, '<', $file) or die "$file: $!\n";

	while (my $line = <$in>) {
		$line =~ s/#.*//;

		my ($word, @rest) = split(' ', $line) or next;

		$self->line($word, @rest)
			or push @{ $self->{faults} }, "$file:$.: malformed";
	}

	$self->expect($_, $routes{$_}) for sort keys %routes;

	return $self;
}

# Sets the expectations for each method of each route: from a line of the table
# if there is one, otherwise from the permission that the route requires.

sub expect {
	my ($self, $kind, $routes) = @_;

	my $lines = $self->{lines}{$kind} || {};
	my %used;

	for my $route (@$routes) {
		for my $method (@{ $route->{methods} }) {
			my $name = "$kind $method $route->{form}";
			my $said = $lines->{$name} || $self->by_right($kind,
				$route, $method);

			if (!$said) {
				push @{ $self->{faults} }, "no line for "
					. "\"$name\": its right alone does not "
					. "say who may send it";
				next;
			}

			push @{ $self->{$kind} }, map { {
				form => $route->{form}, methods => [ $method ],
				versions => $route->{versions}, %$_
			} } @$said;

			push @{ $self->{faults} }, map {
				"no column \"$_->{column}\" for \"$name\""
			} grep { $_->{column} ne 'url'
				&& !exists $self->{columns}{ $_->{column} }
			} @$said;

			$used{$name} = 1;
		}
	}

	push @{ $self->{faults} },
		map { "no route \"$_\", which has an expectation" }
		grep { !$used{$_} } sort keys %$lines;
}

# Returns the expectation that follows from the permission of a route.  Returns
# undef if the route needs no token, or changes data with only the read
# permission: such a route needs a line in the table of expectations.

sub by_right {
	my ($self, $kind, $route, $method) = @_;

	my $looks = $method =~ /^(?:GET|HEAD)$/;
	my $right = $route->{access};

	return undef if $right !~ ($looks ? qr/^(?:reads|browses|writes)$/
		: qr/^(?:writes|deletes)$/);

	my $thing = $route->{form} =~ /:(?:id|repo|git|hash)\b/;
	my %columns = $kind eq 'api' ? (
		reads => $thing ? 'file' : 'use', writes => 'put',
		deletes => $thing ? 'forget' : 'drop'
	) : (
		writes => 'change', deletes => 'remove',
		(map { $_ => $thing ? 'look' : 'list' } qw/ reads browses /)
	);
	my $column = $columns{$right};

	# a page of another origin can only make a browser send reads

	my %more = $looks && $column eq 'change' ? ('owner.page' => 'oom') : ();

	return [ { column => $column, more => \%more } ];
}

sub line {
	my ($self, $word, @rest) = @_;

	my $parse = $self->can("line_$word");

	return $parse->($self, @rest) if $parse;
	return $self->cells($word, @rest);
}

sub line_column {
	my ($self, $name, $things, $as) = @_;

	return 0 unless defined $things && !exists $self->{columns}{$name};

	$self->{as}{$name} = $1 if ($as // '') =~ /^as=(\w+)$/;

	$self->{columns}{$name} = $things eq '-' ? '' : $things;

	return 1;
}

sub line_api { return shift->line_route('api', @_) }
sub line_hub { return shift->line_route('hub', @_) }

sub line_route {
	my ($self, $kind, $form, $methods, $column, @more) = @_;

	return 0 unless defined $column;

	push @{ $self->{lines}{$kind}{"$kind $_ $form"} },
		{ column => $column, more => pairs(@more) }
		for split(/,/, $methods);

	return 1;
}

sub line_caller {
	my ($self, $name, @more) = @_;

	return 0 unless defined $name && !grep { $_->{name} eq $name }
		@{ $self->{callers} };

	push @{ $self->{callers} }, { name => $name, %{ pairs(@more) } };

	return 1;
}

sub line_matrix {
	my ($self, $name, $of, $base) = @_;

	return 0 if !defined $name || exists $self->{matrices}{$name};
	return 0 if defined $of
		&& ($of ne 'of' || !$self->{matrices}{ $base // '' });

	$self->{matrices}{$name} = defined $base ? { map {
		$_ => { %{ $self->{matrices}{$base}{$_} } }
	} keys %{ $self->{matrices}{$base} } } : {};
	$self->{derived}{$name} = defined $base;
	push @{ $self->{order} }, $name;

	return 1;
}

sub line_cells {
	my ($self, @columns) = @_;

	$self->{head} = \@columns;

	return !grep { !exists $self->{columns}{$_} } @columns;
}

# Parses a group of callers.

sub line_group {
	my ($self, $name, @callers) = @_;
	my %is = map { $_->{name} => 1 } @{ $self->{callers} };

	return 0 if grep { !$is{$_} } @callers;

	push @{ $self->{groups}{$name // ''} }, @callers;

	return @callers > 0;
}

# Parses a row of a matrix.  It applies to a caller, a group of callers, "all",
# or all names with a prefix, as in "bob.*".  In a matrix based on another one,
# a row for several callers applies only to those that already have a row.

sub cells {
	my ($self, $who, @cells) = @_;

	my $matrix = $self->{order}[-1] // return 0;
	my @head = @{ $self->{head} || [] };
	my $like = $who eq 'all' ? qr// : $who =~ /^(.+\.)\*$/ ? qr/^\Q$1\E/
		: qr/^\Q$who\E$/;
	my $group = $self->{groups}{$who};
	my @names = $group ? @$group
		: grep { /$like/ } map { $_->{name} } @{ $self->{callers} };

	@names = grep { $self->{matrices}{$matrix}{$_} } @names
		if @names > 1 && $self->{derived}{$matrix};

	return 0 unless @names && @cells && @cells == @head;

	for my $i (0 .. $#head) {
		my $size = length($self->{columns}{$head[$i]}) || 1;

		return 0 unless $cells[$i] =~ /^[osmufcn]{$size}$/;

		$self->{matrices}{$matrix}{$_}{$head[$i]} = $cells[$i]
			for @names;
	}

	return 1;
}

sub pairs {
	return { map { /^([\w.]+)=(.*)$/ ? ($1 => $2) : ($_ => '') } @_ };
}

sub routes { return $_[0]->{$_[1]} }
sub callers { return $_[0]->{callers} }
sub things { return $_[0]->{columns}{$_[1]} }
sub matrices { return $_[0]->{order} }

# Returns the cell of a caller and a column in a matrix.  A column without cells
# uses those of the column that its "as=" names, but of these only the letters
# for the things (such as S and O) that the column lists.

sub cell {
	my ($self, $matrix, $who, $column) = @_;

	my $cells = $self->{matrices}{$matrix}{$who};
	my $as = $self->{as}{$column} // '';
	my $cell = $cells->{$as};

	return $cells->{$column} if exists $cells->{$column} || !defined $cell;

	return join('', map {
		substr($cell, index($self->{columns}{$as}, $_), 1)
	} split(//, $self->{columns}{$column}));
}

# Returns whether a caller has a row in a matrix.

sub comes { return exists $_[0]->{matrices}{$_[1]}{$_[2]} }

sub faults {
	my ($self) = @_;

	return (@{ $self->{faults} }, $self->empty_cells());
}

# Returns a fault for each missing cell: a caller in a matrix must have a cell
# in each of its columns.

sub empty_cells {
	my ($self) = @_;

	my @faults;

	for my $name (@{ $self->{order} }) {
		my $matrix = $self->{matrices}{$name};
		my %columns = map { map { $_ => 1 } keys %$_ } values %$matrix;

		delete @columns{ keys %{ $self->{as} || {} } };

		for my $who (sort keys %$matrix) {
			push @faults, map { "$name: nothing for $who, $_" }
				grep { !exists $matrix->{$who}{$_} }
				sort keys %columns;
		}
	}

	return @faults;
}

1;
